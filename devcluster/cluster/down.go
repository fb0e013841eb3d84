package cluster

import (
	"context"
	"errors"

	"tkestack.io/tapp/devcluster/kernel"
	"tkestack.io/tapp/devcluster/mount"
	"tkestack.io/tapp/devcluster/state"
)

// Down ends the cluster and removes its traces; logs and programs stay. It does not need to know what was started: it
// works as well after a crash, and when there is nothing.
func (c *Cluster) Down(ctx context.Context) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, found, err := c.Dir.Load()
	if err != nil {
		return err
	}
	if err := c.clean(ctx); err != nil {
		return err
	}
	if !found {
		c.Out.Line("There was no cluster to end.")
		return nil
	}
	c.Out.Line("The cluster is down after %.1fs; its logs are in %s.", c.Out.Elapsed().Seconds(), c.Dir.Logs())
	return nil
}

func (c *Cluster) clean(ctx context.Context) error {
	record, found, err := c.Dir.Load()
	if err != nil {
		return err
	}
	// All data is thrown away, so there is nothing to end gently for.
	err = c.step("processes have ended", func() error {
		records, err := c.processes().Records()
		if err != nil {
			return err
		}
		var names []string
		for _, r := range records {
			names = append(names, r.Name)
		}
		if err := c.processes().Stop(ctx, 0, names...); err != nil {
			return err
		}
		return c.groups().Kill(ctx, "")
	})
	if err != nil {
		return err
	}
	if err := restoreKernel(ctx); err != nil {
		return err
	}
	return c.step("mounts, networks, control groups and files are removed", func() error {
		if found && record.Nodes > 0 {
			p := c.parts(record)
			errs := []error{p.network.Down(ctx)}
			for _, n := range c.nodes(p) {
				errs = append(errs, n.RemoveStrays())
			}
			if err := errors.Join(errs...); err != nil {
				return err // the record stays for the next attempt
			}
		}
		if err := mount.Clear(c.Dir.Runtime, c.Dir.Data()); err != nil {
			return err
		}
		if err := c.groups().Remove(ctx, ""); err != nil {
			return err
		}
		return c.Dir.Remove()
	})
}

// restoreKernel puts back what kubelets changed of the kernel, while none starts.
func restoreKernel(ctx context.Context) error {
	unlock, err := state.LockMachine(ctx, "kubelets")
	if err != nil {
		return err
	}
	defer unlock()
	return kernel.Here().Restore()
}
