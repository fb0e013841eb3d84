package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errUnhealthy tells that something which should run does not.
var errUnhealthy = errors.New("the cluster is not healthy; `devcluster up` repairs it")

// Status shows the processes and nodes. Its error tells that something is wrong with them.
func (c *Cluster) Status(ctx context.Context) error {
	p, err := c.load()
	if err != nil {
		return err
	}
	healthy := true
	for _, name := range c.expected(p) {
		r, ok := p.processes.Find(name)
		switch {
		case !ok:
			c.Out.Line("%-26s stopped", name)
		case !r.Alive():
			c.Out.Line("%-26s dead, see %s", name, p.processes.Logfile(name))
		default:
			c.Out.Line("%-26s runs, process %d", name, r.PID)
			continue
		}
		healthy = false
	}
	if err := c.showNodes(ctx, p); err != nil {
		c.Out.Line("nodes: %v", err)
		healthy = false
	}
	if !healthy {
		return errUnhealthy
	}
	return nil
}

// expected are the processes of the cluster.
func (c *Cluster) expected(p parts) []string {
	nodes := map[string][]string{}
	for _, n := range c.nodes(p) {
		nodes[n.Name()] = n.Daemons()
	}
	var names []string
	for _, name := range c.components(p) {
		if daemons, ok := nodes[name]; ok {
			names = append(names, daemons...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

func (c *Cluster) showNodes(ctx context.Context, p parts) error {
	api, err := p.api()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	nodes, err := api.Nodes(ctx)
	if err != nil {
		return err
	}
	var simulated, ready, lost int
	for _, n := range nodes {
		switch {
		case n.Simulated:
			simulated++
			if n.Ready {
				ready++
			}
		case n.Ready:
			c.Out.Line("%-26s ready", n.Name)
		default:
			c.Out.Line("%-26s not ready: %s", n.Name, n.Message)
			lost++
		}
	}
	c.Out.Line("%d of %d simulated nodes are ready; API server: %s", ready, simulated, p.pki.Server)
	if lost > 0 || ready < simulated {
		return fmt.Errorf("%d are not ready", lost+simulated-ready)
	}
	return nil
}
