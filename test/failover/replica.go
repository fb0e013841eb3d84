//go:build cluster

package failover

import (
	"context"
	"errors"
	"regexp"

	"tkestack.io/tapp/test/cluster"
)

// replica is a process of tapp, in a test.
type replica struct {
	*cluster.Process
	rig *rig
}

// startReplica starts `tapp COMMAND` with flags, and waits until it is ready.
func (r *rig) startReplica(command string, flags ...string) *replica {
	r.Helper()
	p := r.launch(command, flags...)
	if err := p.WaitReady(r.Context()); err != nil {
		r.Fatal(err)
	}
	return p
}

// launch starts a replica that need not become ready.
func (r *rig) launch(command string, flags ...string) *replica {
	r.Helper()
	p, err := r.Launch(command, append([]string{"--v", "2"}, flags...)...)
	if err != nil {
		r.Fatal(err)
	}
	out := &replica{p, r}
	r.Cleanup(out.kill)
	return out
}

var leads = regexp.MustCompile(`(?m)^tapp_leader 1$`)

func (p *replica) isLeader() bool {
	page, err := p.Get(p.rig.Context(), "/metrics")
	return err == nil && leads.MatchString(page)
}

// kill ends the replica as a crash does.
func (p *replica) kill() {
	p.rig.Helper()
	if err := p.Kill(); err != nil {
		p.rig.Error(err)
	}
}

// terminate asks the replica to end, as a kubelet does.
func (p *replica) terminate() {
	p.rig.Helper()
	if err := p.Terminate(); err != nil {
		p.rig.Fatal(err)
	}
}

// hasEnded waits for the end of a replica that was asked to.
func (p *replica) hasEnded() {
	p.rig.Helper()
	if err := p.WaitEnd(); err != nil {
		p.rig.Error(err)
	}
}

// eventually waits until check returns nil while the replica runs.
func (p *replica) eventually(what string, check func(context.Context) error) {
	p.rig.Helper()
	p.rig.Eventually(what, func(ctx context.Context) error {
		if err := p.Ended(); err != nil {
			p.rig.Fatal(err)
		}
		return check(ctx)
	})
}

// becomesLeader waits until the replica leads.
func (p *replica) becomesLeader() {
	p.rig.Helper()
	p.eventually("it leads", func(context.Context) error {
		if !p.isLeader() {
			return errors.New("not yet")
		}
		return nil
	})
}
