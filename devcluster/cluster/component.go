package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tkestack.io/tapp/devcluster/addon"
	"tkestack.io/tapp/devcluster/controlplane"
	"tkestack.io/tapp/devcluster/kubeapi"
	"tkestack.io/tapp/devcluster/node"
	"tkestack.io/tapp/devcluster/process"
)

// grace is how long a component may take to end in order; kube-apiserver would wait a minute for its clients.
const grace = 5 * time.Second

// components returns the names that Stop and Start know.
func (c *Cluster) components(p parts) []string {
	if p.record.APIOnly {
		return controlplane.APINames()
	}
	names := append(controlplane.Names(), addon.Simulator, addon.Storage)
	if p.record.Nodes > 0 {
		names = append(names, addon.Registry)
	} else if p.record.CertManager {
		names = append(names, addon.CertManager) // beside real nodes it is a pod
	}
	for _, n := range c.nodes(p) {
		names = append(names, n.Name())
	}
	return names
}

func (c *Cluster) component(p parts, name string) (node.Node, bool, error) {
	known := c.components(p)
	if !slices.Contains(known, name) {
		return node.Node{}, false, fmt.Errorf("no component %q; there are %s", name, strings.Join(known, ", "))
	}
	for _, n := range c.nodes(p) {
		if n.Name() == name {
			return n, true, nil
		}
	}
	return node.Node{}, false, nil
}

// Stop ends one component. A node is lost in a stroke: kubelet and containerd die, its containers stay behind.
func (c *Cluster) Stop(ctx context.Context, name string) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := c.load()
	if err != nil {
		return err
	}
	n, isNode, err := c.component(p, name)
	if err != nil {
		return err
	}
	return c.step(name+" has ended", func() error {
		if isNode {
			return n.Lose(ctx)
		}
		return p.processes.Stop(ctx, grace, name)
	})
}

// Cut disconnects a real node from all others: what runs on it goes on. Start connects it again.
func (c *Cluster) Cut(ctx context.Context, name string) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := c.load()
	if err != nil {
		return err
	}
	n, isNode, err := c.component(p, name)
	if err != nil {
		return err
	}
	if !isNode {
		return fmt.Errorf("%s is no node", name)
	}
	return c.step(name+" is disconnected", func() error { return p.network.Cut(ctx, n.Index) })
}

// Start starts one component again and waits until it works.
func (c *Cluster) Start(ctx context.Context, name string) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := c.load()
	if err != nil {
		return err
	}
	n, isNode, err := c.component(p, name)
	if err != nil {
		return err
	}
	api, err := p.api()
	if err != nil {
		return err
	}
	return c.step(name+" is ready", func() error {
		if isNode {
			return c.startNode(ctx, p, api, n)
		}
		return c.startProcess(ctx, p, api, name)
	})
}

func (c *Cluster) startNode(ctx context.Context, p parts, api *kubeapi.Client, n node.Node) error {
	if err := n.Prepare(ctx, p.record.Nodes); err != nil {
		return err
	}
	if err := n.StartRuntime(ctx); err != nil {
		return err
	}
	if err := n.StartKubelet(ctx); err != nil {
		return err
	}
	return waitReal(ctx, api, []node.Node{n})
}

func (c *Cluster) startProcess(ctx context.Context, p parts, api *kubeapi.Client, name string) error {
	ensure := func(spec process.Spec) error {
		_, err := p.processes.Ensure(ctx, spec)
		return err
	}
	switch name {
	case controlplane.Etcd:
		return ensure(p.plane.Etcd())
	case controlplane.APIServer:
		if err := ensure(p.plane.APIServer()); err != nil {
			return err
		}
		return c.waitAPI(ctx, p, api)
	case controlplane.ControllerManager:
		return ensure(p.plane.ControllerManager())
	case controlplane.Scheduler:
		return ensure(p.plane.Scheduler())
	case addon.Registry:
		return c.addons(p, api).StartRegistry(ctx)
	case addon.CertManager:
		return c.addons(p, api).StartCertManager(ctx)
	case addon.Storage:
		return c.addons(p, api).StartStorage(ctx)
	}
	return c.addons(p, api).StartSimulator(ctx)
}
