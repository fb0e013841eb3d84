// Package cluster puts the parts together: it starts, repairs, shows and stops a whole cluster.
//
// Every step of Up makes what is missing and keeps what is there, so that Up is the way to start a cluster, to repair it
// and to change its number of nodes. Only a cluster whose control plane has crashed as a whole is thrown away first.
package cluster

import (
	"context"
	"errors"
	"time"

	"tkestack.io/tapp/devcluster/addon"
	"tkestack.io/tapp/devcluster/cgroup"
	"tkestack.io/tapp/devcluster/controlplane"
	"tkestack.io/tapp/devcluster/kubeapi"
	"tkestack.io/tapp/devcluster/network"
	"tkestack.io/tapp/devcluster/node"
	"tkestack.io/tapp/devcluster/pki"
	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/progress"
	"tkestack.io/tapp/devcluster/state"
)

// Cluster is the cluster of one state directory.
type Cluster struct {
	Dir    state.Dir
	Module string // the source of the programs; only Up and Build need it
	Out    *progress.Printer
}

func (c *Cluster) lock(ctx context.Context) (unlock func(), err error) {
	return c.Dir.Lock(ctx, func() { c.Out.Line("Another command works on this cluster; waiting for it.") })
}

func (c *Cluster) processes() process.Table {
	return process.Table{Dir: c.Dir.Processes(), Logs: c.Dir.Logs(), Home: c.Dir.Runtime}
}

func (c *Cluster) groups() cgroup.Tree { return cgroup.Tree{Name: c.Dir.Name()} }

// parts are what a cluster with a known slot consists of.
type parts struct {
	record    state.Record
	processes process.Table
	pki       pki.Files
	plane     controlplane.Plane
	network   network.Network
}

func (c *Cluster) parts(r state.Record) parts {
	files := pki.Files{Dir: c.Dir.PKI(), Server: controlplane.URL(r.Slot, r.Nodes > 0)}
	return parts{
		record: r, processes: c.processes(), pki: files,
		plane:   controlplane.Plane{Dir: c.Dir, Slot: r.Slot, PKI: files, Real: r.Nodes > 0, NodeGrace: r.NodeGrace},
		network: network.Network{Dir: c.Dir.Namespaces(), Slot: r.Slot},
	}
}

func (p parts) node(dir state.Dir, i int) node.Node {
	return node.Node{Index: i, Dir: dir, Slot: p.record.Slot, PKI: p.pki, Processes: p.processes}
}

// nodes returns the real nodes, as far as they are recorded.
func (c *Cluster) nodes(p parts) []node.Node {
	var nodes []node.Node
	for i := 1; i <= p.record.Nodes; i++ {
		nodes = append(nodes, p.node(c.Dir, i))
	}
	return nodes
}

// api returns a client; the certificates must be there.
func (p parts) api() (*kubeapi.Client, error) {
	return kubeapi.New(kubeapi.Options{
		Server: p.pki.Server, CA: p.pki.Cert(pki.CA), Cert: p.pki.Cert(pki.Operator), Key: p.pki.Key(pki.Operator),
	})
}

func (c *Cluster) addons(p parts, api *kubeapi.Client) addon.Addons {
	return addon.Addons{Dir: c.Dir, Slot: p.record.Slot, PKI: p.pki, API: api, Processes: p.processes}
}

// step runs one named step and shows it.
func (c *Cluster) step(name string, run func() error) error {
	done := c.Out.Step(name)
	err := run()
	done(err)
	return err
}

// patience: what takes a few seconds may take a minute on a machine that compiles something meanwhile.
const patience = 2 * time.Minute

var errNone = errors.New("no cluster is up (start one with `devcluster up`)")

func (c *Cluster) load() (parts, error) {
	r, ok, err := c.Dir.Load()
	if err != nil {
		return parts{}, err
	}
	if !ok {
		return parts{}, errNone
	}
	return c.parts(r), nil
}
