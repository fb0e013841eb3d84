package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"tkestack.io/tapp/devcluster/addon"
	"tkestack.io/tapp/devcluster/build"
	"tkestack.io/tapp/devcluster/controlplane"
	"tkestack.io/tapp/devcluster/kubeapi"
	"tkestack.io/tapp/devcluster/node"
	"tkestack.io/tapp/devcluster/poll"
)

// populate gives a control plane its nodes, and waits until the cluster is fit for use.
func (c *Cluster) populate(ctx context.Context, p parts, api *kubeapi.Client, programs build.Programs) error {
	group, ctx := errgroup.WithContext(ctx)
	addons := c.addons(p, api)
	group.Go(func() error { return c.simulate(ctx, p, api, addons) })
	group.Go(func() error {
		return c.step("kube-controller-manager works", func() error { return c.waitControllers(ctx, p, api) })
	})
	group.Go(func() error {
		return c.step("storage is ready", func() error { return addons.EnsureStorage(ctx) })
	})
	if p.record.Nodes > 0 {
		group.Go(func() error { return c.startNodes(ctx, p, api, addons) })
	}
	if p.record.MetricsServer {
		group.Go(func() error {
			return c.step("metrics-server has measured the nodes", func() error { return addons.EnsureMetricsServer(ctx) })
		})
	}
	if p.record.CertManager {
		group.Go(func() error {
			return c.step("cert-manager is ready", func() error { return addons.EnsureCertManager(ctx, programs.CertManagerCRDs(), p.record.Nodes > 0) })
		})
	}
	return group.Wait()
}

func (c *Cluster) simulate(ctx context.Context, p parts, api *kubeapi.Client, addons addon.Addons) error {
	return c.step(fmt.Sprintf("%d simulated nodes are ready", p.record.Simulated), func() error {
		if err := addons.StartSimulator(ctx); err != nil {
			return err
		}
		// Beside real nodes nothing shall land on simulated ones by accident.
		if err := addons.Simulate(ctx, p.record.Simulated, p.record.Nodes > 0); err != nil {
			return err
		}
		return waitNodes(ctx, api, func() error { return p.processes.Died(addon.Simulator) }, func(n kubeapi.Node) bool { return n.Simulated }, p.record.Simulated)
	})
}

func (c *Cluster) startNodes(ctx context.Context, p parts, api *kubeapi.Client, addons addon.Addons) error {
	nodes := c.nodes(p)
	err := c.step(fmt.Sprintf("%d real nodes are ready", len(nodes)), func() error {
		for _, n := range nodes {
			if err := n.StartKubelet(ctx); err != nil {
				return err
			}
		}
		return waitReal(ctx, api, nodes)
	})
	if err != nil {
		return err
	}
	return c.step("CoreDNS is ready", func() error {
		if err := addons.ApplyCoreDNS(ctx); err != nil {
			return err
		}
		return addons.WaitCoreDNS(ctx)
	})
}

func waitReal(ctx context.Context, api *kubeapi.Client, nodes []node.Node) error {
	started := map[string]time.Time{}
	for _, n := range nodes {
		started[n.Name()] = n.Started()
	}
	died := func() error {
		for _, n := range nodes {
			if err := n.Died(); err != nil {
				return err
			}
		}
		return nil
	}
	fresh := func(n kubeapi.Node) bool {
		since, ours := started[n.Name]
		// What its kubelet said before its last start is no news.
		return ours && !n.Heartbeat.Before(since.Truncate(time.Second))
	}
	return waitNodes(ctx, api, died, fresh, len(nodes))
}

// waitNodes waits until want of the nodes that belong are ready; it gives up when died returns an error.
func waitNodes(ctx context.Context, api *kubeapi.Client, died func() error, belongs func(kubeapi.Node) bool, want int) error {
	return poll.Until(ctx, "nodes", patience, 100*time.Millisecond, func(ctx context.Context) error {
		if err := died(); err != nil {
			return poll.Stop(err)
		}
		nodes, err := api.Nodes(ctx)
		if err != nil {
			return err
		}
		ready, problem := 0, "not all of them have reported yet"
		for _, n := range nodes {
			switch {
			case !belongs(n):
			case n.Ready:
				ready++
			default:
				problem = n.Name + ": " + n.Message
			}
		}
		if ready < want {
			return fmt.Errorf("%d of %d are ready; %s", ready, want, problem)
		}
		return nil
	})
}

// waitControllers waits for the first thing that pods need of the controllers.
func (c *Cluster) waitControllers(ctx context.Context, p parts, api *kubeapi.Client) error {
	return poll.Until(ctx, "service account of the default namespace", patience, 50*time.Millisecond, func(ctx context.Context) error {
		for _, name := range []string{controlplane.ControllerManager, controlplane.Scheduler} {
			if err := p.processes.Died(name); err != nil {
				return poll.Stop(err)
			}
		}
		return api.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	})
}

// removeNode takes a real node out of the cluster.
func (c *Cluster) removeNode(ctx context.Context, p parts, i int) error {
	n := p.node(c.Dir, i)
	return c.step(n.Name()+" is removed", func() error {
		if err := n.Destroy(ctx); err != nil {
			return err
		}
		api, err := p.api()
		if err != nil {
			return err
		}
		if err := api.Delete(ctx, "/api/v1/nodes/"+n.Name()); err != nil && !kubeapi.IsNotFound(err) {
			return errors.Join(fmt.Errorf("remove %s from the cluster", n.Name()), err)
		}
		return nil
	})
}
