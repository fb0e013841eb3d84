package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"tkestack.io/tapp/devcluster/addon"
	"tkestack.io/tapp/devcluster/build"
	"tkestack.io/tapp/devcluster/controlplane"
	"tkestack.io/tapp/devcluster/images"
	"tkestack.io/tapp/devcluster/kubeapi"
	"tkestack.io/tapp/devcluster/node"
	"tkestack.io/tapp/devcluster/pki"
	"tkestack.io/tapp/devcluster/poll"
	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/registry"
	"tkestack.io/tapp/devcluster/state"
)

// Size is how large a cluster shall be, and with what.
type Size struct {
	Nodes     int // real nodes; 0: simulated nodes only
	Simulated int
	// Kubernetes is the minor version of the control plane, such as 1.34, for simulated
	// nodes only; empty: the usual one.
	Kubernetes string
	// APIOnly leaves out all nodes and all controllers: for a cluster that only stores objects.
	APIOnly     bool
	CertManager bool
	// MetricsServer needs real nodes.
	MetricsServer bool
	NodeGrace     time.Duration // how long a node may be silent before it counts as not ready; 0: as usual
}

// Up makes the cluster run, with the given size.
func (c *Cluster) Up(ctx context.Context, size Size) error {
	if err := c.check(ctx, size); err != nil {
		return err
	}
	programs, err := c.Build(ctx, size.Kubernetes)
	if err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	record, err := c.prepare(ctx, size, programs)
	if err != nil {
		return err
	}
	p := c.parts(record)
	if err := c.configure(ctx, p); err != nil {
		return err
	}
	api, err := p.api()
	if err != nil {
		return err
	}
	if err := c.start(ctx, p, api, programs); err != nil {
		return err
	}
	if !record.APIOnly {
		if err := c.populate(ctx, p, api, programs); err != nil {
			return err
		}
	}
	c.Out.Line("The cluster is up after %.1fs. To use it:\n  export KUBECONFIG=%s PATH=%s:$PATH", c.Out.Elapsed().Seconds(), c.Dir.Kubeconfig(), c.Dir.Bin())
	return nil
}

// Build makes sure that the programs are in the cache, those of a version of Kubernetes
// among them if it is not empty.
func (c *Cluster) Build(ctx context.Context, kubernetes string) (build.Programs, error) {
	cache, err := build.CacheDir()
	if err != nil {
		return build.Programs{}, err
	}
	b := build.Builder{Module: c.Module, Kubernetes: kubernetes, Cache: cache, Line: c.Out.Line, Update: c.Out.Update}
	var programs build.Programs
	err = c.step("programs are built", func() error {
		programs, err = b.Ensure(ctx)
		return err
	})
	return programs, err
}

// configure writes keys, certificates and configuration, and lays the network.
func (c *Cluster) configure(ctx context.Context, p parts) error {
	server := []netip.Addr{p.record.Slot.APIService(), p.record.Slot.Host()}
	if err := p.pki.EnsureCluster(server); err != nil {
		return err
	}
	config, err := os.ReadFile(p.pki.Kubeconfig(pki.Admin))
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := state.WriteFile(c.Dir.Kubeconfig(), config, 0o600); err != nil {
		return err
	}
	if err := p.plane.Configure(); err != nil {
		return err
	}
	if p.record.Nodes == 0 {
		return nil
	}
	for _, n := range c.nodes(p) {
		// Without its network a node is beyond repair.
		if !p.network.Intact() || !p.network.HasNode(n.Index) {
			if err := n.Destroy(ctx); err != nil {
				return err
			}
		}
	}
	return p.network.Up(ctx)
}

// start starts all processes but those that need the API server to be there.
func (c *Cluster) start(ctx context.Context, p parts, api *kubeapi.Client, programs build.Programs) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.startPlane(ctx, p, api) })
	if p.record.Nodes == 0 {
		return group.Wait()
	}
	group.Go(func() error {
		return c.step("image registry serves all images", func() error {
			if err := c.addons(p, api).StartRegistry(ctx); err != nil {
				return err
			}
			cache, err := build.CacheDir()
			if err != nil {
				return err
			}
			return images.Push(ctx, images.Options{
				Registry: node.Registry(p.record.Slot), CacheDir: filepath.Join(cache, "images"), ModuleDir: c.Module, Addons: programs.Addons(),
				Transport: registry.Transport(addon.RegistrySocket(c.Dir)),
			})
		})
	})
	group.Go(func() error {
		return c.step("containerd answers on every node", func() error {
			for _, n := range c.nodes(p) {
				if err := n.Prepare(ctx, p.record.Nodes); err != nil {
					return err
				}
			}
			runtimes, ctx := errgroup.WithContext(ctx)
			for _, n := range c.nodes(p) {
				runtimes.Go(func() error { return n.StartRuntime(ctx) })
			}
			return runtimes.Wait()
		})
	})
	return group.Wait()
}

func (c *Cluster) startPlane(ctx context.Context, p parts, api *kubeapi.Client) error {
	err := c.step("etcd and kube-apiserver are ready", func() error {
		for _, spec := range []process.Spec{p.plane.Etcd(), p.plane.APIServer()} {
			if _, err := p.processes.Ensure(ctx, spec); err != nil {
				return err
			}
		}
		return c.waitAPI(ctx, p, api)
	})
	if err != nil {
		return err
	}
	if p.record.APIOnly {
		return nil
	}
	for _, spec := range []process.Spec{p.plane.ControllerManager(), p.plane.Scheduler()} {
		if _, err := p.processes.Ensure(ctx, spec); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) waitAPI(ctx context.Context, p parts, api *kubeapi.Client) error {
	return poll.Until(ctx, controlplane.APIServer, patience, 50*time.Millisecond, func(ctx context.Context) error {
		for _, name := range controlplane.APINames() {
			if err := p.processes.Died(name); err != nil {
				return poll.Stop(err)
			}
		}
		for _, path := range []string{"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system", "/api/v1/namespaces/kube-node-lease"} {
			if err := api.Get(ctx, path, nil); err != nil {
				return err
			}
		}
		return nil
	})
}
