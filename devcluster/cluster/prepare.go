package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"tkestack.io/tapp/devcluster/build"
	"tkestack.io/tapp/devcluster/controlplane"
	"tkestack.io/tapp/devcluster/debian"
	"tkestack.io/tapp/devcluster/kernel"
	"tkestack.io/tapp/devcluster/mount"
	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/slot"
	"tkestack.io/tapp/devcluster/state"
)

// check refuses what cannot work before anything is built or started.
func (c *Cluster) check(ctx context.Context, size Size) error {
	if size.Nodes < 0 || size.Nodes > slot.MaxNodes || size.Simulated < 0 {
		return fmt.Errorf("a cluster has 0 to %d real nodes, and some simulated ones", slot.MaxNodes)
	}
	if size.APIOnly && (size.Nodes > 0 || size.CertManager) {
		return errors.New("a cluster of an API server only has neither nodes nor cert-manager")
	}
	if size.Nodes > 0 && size.Kubernetes != "" {
		return errors.New("real nodes run the usual version of Kubernetes; use --nodes=sim for another one")
	}
	if size.Nodes == 0 && size.MetricsServer {
		return errors.New("metrics-server needs real nodes to measure")
	}
	if size.Nodes == 0 {
		return nil
	}
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return errors.New("real nodes need Linux and root; use --nodes=sim for a control plane with simulated nodes only")
	}
	if err := kernel.Here().Alone(); err != nil {
		return err
	}
	missing := debian.Missing()
	if len(missing) == 0 {
		return nil
	}
	c.Out.Line("Installing what real nodes need: %s", strings.Join(missing, " "))
	return c.step("installed Debian packages: "+strings.Join(missing, " "), func() error { return debian.Install(ctx, missing) })
}

// prepare finds out what is there and records what shall be.
func (c *Cluster) prepare(ctx context.Context, size Size, programs build.Programs) (state.Record, error) {
	record, found, err := c.Dir.Load()
	if err != nil {
		return record, err
	}
	if found && c.crashed(record) {
		c.Out.Line("The cluster has crashed; cleaning up before a new start.")
		if err := c.clean(ctx); err != nil {
			return record, err
		}
		found = false
	}
	if found && ((record.Nodes > 0) != (size.Nodes > 0) || record.APIOnly != size.APIOnly) {
		return record, errors.New("the cluster that is up has other kinds of nodes: `devcluster down` first, or keep --nodes as it was")
	}
	if found && record.Kubernetes != size.Kubernetes {
		return record, errors.New("the cluster that is up has another version of Kubernetes: `devcluster down` first, or keep --kubernetes as it was")
	}
	if !found {
		// Data without a record (the temporary directory is cleared now and then) belongs to a cluster that is gone.
		if err := errors.Join(mount.Clear(c.Dir.Data()), c.Dir.Remove()); err != nil {
			return record, fmt.Errorf("remove what an earlier cluster left: %w", err)
		}
	}
	if err := c.Dir.Create(); err != nil {
		return record, err
	}
	if err := c.link(programs); err != nil {
		return record, err
	}
	if !found {
		return c.claim(ctx, size)
	}
	for i := record.Nodes; i > size.Nodes; i-- {
		if err := c.removeNode(ctx, c.parts(record), i); err != nil {
			return record, err
		}
	}
	record.Nodes, record.Simulated, record.CertManager = size.Nodes, size.Simulated, size.CertManager
	record.NodeGrace, record.MetricsServer = size.NodeGrace, size.MetricsServer
	return record, c.Dir.Save(record)
}

// crashed tells whether a control plane was started of which nothing is left. What `stop` has ended is not crashed.
func (c *Cluster) crashed(record state.Record) bool {
	if record.Boot != process.Boot() {
		return true
	}
	recorded := false
	for _, name := range controlplane.Names() {
		if r, ok := c.processes().Find(name); ok {
			if r.Alive() {
				return false
			}
			recorded = true
		}
	}
	return recorded
}

// claim finds a free slot for a new cluster, one command on the machine at a time.
func (c *Cluster) claim(ctx context.Context, size Size) (state.Record, error) {
	unlock, err := state.LockMachine(ctx, "slots")
	if err != nil {
		return state.Record{}, err
	}
	defer unlock()
	record := state.Record{Kubernetes: size.Kubernetes, Nodes: size.Nodes, Simulated: size.Simulated, APIOnly: size.APIOnly, CertManager: size.CertManager, NodeGrace: size.NodeGrace, MetricsServer: size.MetricsServer, Boot: process.Boot()}
	if record.Slot, err = slot.Find(ctx, c.Dir.Preferred(), c.Dir.Taken()); err != nil {
		return record, err
	}
	// The logs of the last cluster were kept until now.
	logs, _ := filepath.Glob(filepath.Join(c.Dir.Logs(), "*.log"))
	for _, path := range logs {
		if err := os.Remove(path); err != nil {
			return record, fmt.Errorf("remove old logs: %w", err)
		}
	}
	return record, c.Dir.Save(record)
}

// link puts the programs, and this one, into the bin directory.
func (c *Cluster) link(programs build.Programs) error {
	if err := programs.Link(c.Dir.Bin()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("link this program: %w", err)
	}
	path := filepath.Join(c.Dir.Bin(), "devcluster")
	if self == path {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("link this program: %w", err)
	}
	if err := os.Symlink(self, path); err != nil {
		return fmt.Errorf("link this program: %w", err)
	}
	return nil
}
