package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// work is what the leader does, until ctx ends. What is under way then may go on
// with the second context for a while.
type work func(ctx, underWay context.Context)

// campaign works whenever this replica is the leader, until ctx ends. A leader
// that loses the lease stops working, and campaigns again: an API server that
// was away is no reason to exit.
//
// Only one replica may work at a time, so that the order matters: all work has
// ended before the lease is given up, at whatever end. client-go gives it up
// first, and tells the workers after; the lock therefore waits for them.
func (e Election) campaign(ctx context.Context, leases coordinationv1client.LeasesGetter, identity string, grace time.Duration, watchdog *leaderelection.HealthzAdaptor, do work) error {
	if e.Namespace == "" {
		e.Namespace = namespaceOfLease()
	}
	for ctx.Err() == nil {
		if err := e.stand(ctx, leases, identity, grace, watchdog, do); err != nil {
			return err
		}
	}
	return nil
}

// stand runs for one term.
func (e Election) stand(ctx context.Context, leases coordinationv1client.LeasesGetter, identity string, grace time.Duration, watchdog *leaderelection.HealthzAdaptor, do work) error {
	t := newTerm(ctx, grace, do)
	// The lease outlives ctx until the work has ended.
	logger := klog.LoggerWithName(klog.FromContext(ctx), "election")
	lease, release := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logger))
	defer release()
	stop := context.AfterFunc(ctx, func() {
		t.end()
		release()
	})
	defer stop()

	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: e.Name,
		Lock: &patientLock{term: t, Interface: &resourcelock.LeaseLock{
			LeaseMeta:  leaseMeta(e.Namespace, e.Name),
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}},
		LeaseDuration:   e.LeaseDuration,
		RenewDeadline:   e.RenewDeadline,
		RetryPeriod:     e.RetryPeriod,
		ReleaseOnCancel: true,
		WatchDog:        watchdog,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { t.begin() },
			OnStoppedLeading: t.breakOff,
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	watchdog.SetLeaderElection(elector)
	elector.Run(lease)
	t.breakOff()
	if ctx.Err() == nil {
		logger.Info("Lost the lease; the work has stopped, and the next campaign begins", "lease", e.Namespace+"/"+e.Name)
	}
	return nil
}

// term of a leader: the work of one.
type term struct {
	do    work
	grace time.Duration
	ctx   context.Context
	// finish asks the work to end, abort breaks off what is under way.
	finish, abort context.CancelFunc
	underWay      context.Context

	mu      sync.Mutex
	running chan struct{} // closed when the work has ended; nil: it never began
	over    bool
}

func newTerm(ctx context.Context, grace time.Duration, do work) *term {
	t := &term{do: do, grace: grace}
	t.ctx, t.finish = context.WithCancel(context.WithoutCancel(ctx))
	t.underWay, t.abort = context.WithCancel(context.WithoutCancel(ctx))
	return t
}

func (t *term) begin() {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	running := make(chan struct{})
	t.running = running
	t.mu.Unlock()
	defer close(running)
	t.do(t.ctx, t.underWay)
}

// end lets the work end in order, and returns when it has. What has not ended
// within the grace is broken off.
func (t *term) end() {
	t.finish()
	timer := time.AfterFunc(t.grace, t.abort)
	defer timer.Stop()
	t.await()
}

// breakOff ends the work at once, and returns when it has ended.
func (t *term) breakOff() {
	t.finish()
	t.abort()
	t.await()
}

func (t *term) await() {
	t.mu.Lock()
	t.over = true
	running := t.running
	t.mu.Unlock()
	if running != nil {
		<-running
	}
}

// patientLock does not give up the lease before the work has ended.
type patientLock struct {
	resourcelock.Interface
	term *term
}

// Update writes the lease; without a holder it is the one that gives it up.
func (l *patientLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		l.term.breakOff()
	}
	return l.Interface.Update(ctx, record)
}
