package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// A lease that cannot be given up at once is tried again for a while: the standby
// would have to wait until it expires otherwise. It must be over well before a
// kubelet's patience with a pod that ends is (30 s with the grace before it).
const (
	giveUpRetry   = 200 * time.Millisecond
	giveUpTimeout = 5 * time.Second
)

// work is what the leader does, until ctx ends. What is under way then may go on
// with the second context for a while.
type work func(ctx, underWay context.Context)

// candidate is who stands for election.
type candidate struct {
	leases   coordinationv1client.LeasesGetter
	identity string
	// grace is how long work under way may go on at the end.
	grace    time.Duration
	watchdog *leaderelection.HealthzAdaptor
	do       work
}

// campaign works whenever this replica is the leader, until ctx ends. A leader
// that loses the lease stops working, and campaigns again: an API server that
// was away is no reason to exit.
//
// Only one replica may work at a time, so that the order matters: all work has
// ended before the lease is given up. client-go would do it the other way round,
// and try once; so it is done here.
func (e Election) campaign(ctx context.Context, c candidate) error {
	if e.Namespace == "" {
		e.Namespace = metav1.NamespaceSystem
	}
	for ctx.Err() == nil {
		if err := e.stand(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// stand runs for one term.
func (e Election) stand(ctx context.Context, c candidate) error {
	t := newTerm(ctx, c.grace, c.do)
	logger := klog.LoggerWithName(klog.FromContext(ctx), "election").WithValues("lease", e.Namespace+"/"+e.Name)
	// The lease is renewed until the work has ended, which is after ctx.
	renewing, stopRenewing := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logger))
	defer stopRenewing()
	stop := context.AfterFunc(ctx, func() {
		t.end()
		stopRenewing()
	})
	defer stop()

	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
		Client:     c.leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.identity},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: e.Name, Lock: lock, WatchDog: c.watchdog,
		LeaseDuration: e.LeaseDuration, RenewDeadline: e.RenewDeadline, RetryPeriod: e.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { t.begin() },
			OnStoppedLeading: t.breakOff,
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	c.watchdog.SetLeaderElection(elector)
	elector.Run(renewing)
	t.breakOff()
	switch {
	case ctx.Err() == nil:
		logger.Info("Lost the lease; the work has stopped, and the next campaign begins")
	case elector.IsLeader():
		if err := giveUp(klog.NewContext(context.WithoutCancel(ctx), logger), lock); err != nil {
			logger.Error(err, "The lease is not given up; the others have to wait until it expires", "leaseDuration", e.LeaseDuration)
		}
	}
	return nil
}

// giveUp lets another one have the lease at once, if it is still ours. What fails
// is tried again within giveUpTimeout.
func giveUp(ctx context.Context, lock resourcelock.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, giveUpTimeout)
	defer cancel()
	var failure error
	err := wait.PollUntilContextCancel(ctx, giveUpRetry, true, func(ctx context.Context) (bool, error) {
		held, _, err := lock.Get(ctx)
		if apierrors.IsNotFound(err) || err == nil && held.HolderIdentity != lock.Identity() {
			return true, nil
		}
		if err == nil {
			now := metav1.Now()
			err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
				LeaderTransitions: held.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
			})
		}
		if err != nil && ctx.Err() == nil { // the last error is that of the clock
			failure = err
		}
		return err == nil, nil
	})
	if err != nil && failure != nil {
		return fmt.Errorf("giving up the lease: %w", failure)
	}
	return err
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
