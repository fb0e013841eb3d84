package tapp

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/loop"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// memory is what is remembered of one TApp from sync to sync. Nothing in it
// decides what happens to an instance, and it is lost at every restart.
type memory struct {
	guard    guard
	momentum momentum
	status   statusThrottle
	problems told
	// ending is until when nothing is created, because the namespace is being deleted.
	ending time.Time
}

// sync takes one TApp a step on.
func (c *Controller) sync(ctx context.Context, k loop.Key) (time.Duration, error) {
	t, err := c.lister.TApps(k.Namespace).Get(k.Name)
	if apierrors.IsNotFound(err) {
		c.memories.Forget(k)
		loop.UnderWay(ctx, false)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	m := c.memories.Get(k, t.UID)
	v, wait, err := c.snapshot(ctx, t, m)
	if v == nil || err != nil {
		return wait, err
	}
	began := c.Clock.Now()
	p, err := c.compute(ctx, v, m.ending)
	loop.UnderWay(ctx, meta.IsStatusConditionTrue(p.Status.Conditions, tappv1.ConditionProgressing))
	loop.Looked(ctx)

	// An edit of the spec goes first: it holds for the version that was planned on,
	// and the status makes another one.
	edits, history := cutEdits(p.History)
	edited := c.apply(ctx, v.tapp, m, edits)

	// The status tells of what was observed and not of what is being done about it,
	// so that neither write waits for the other.
	var rest time.Duration
	var statusErr error
	var telling sync.WaitGroup
	telling.Go(func() { rest, statusErr = c.putStatus(ctx, v.tapp, m, &p) })
	done := c.apply(ctx, v.tapp, m, append(history, p.Actions...))
	c.tellProblems(v.tapp, m, p.Problems)
	telling.Wait()
	if len(p.Actions) == 0 && rest == 0 && meta.IsStatusConditionTrue(p.Status.Conditions, tappv1.ConditionReady) {
		c.recorder.settled(v.tapp)
	}
	if len(p.Actions) > 0 {
		klog.FromContext(ctx).V(2).Info("Synced", "generation", v.tapp.Generation, "pods", len(v.pods), "actions", done.summary(),
			"took", c.Clock.Since(began))
	}
	return loop.Soonest(p.Wait, rest, edited.again, done.again), errors.Join(err, edited.errs.join(), done.errs.join(), statusErr)
}

// cutEdits parts what edits the TApp's spec from the other actions of its history.
func cutEdits(all []plan.Action) (edits, history []plan.Action) {
	for _, a := range all {
		if a.Op == plan.OpPruneTemplates {
			edits = append(edits, a)
		} else {
			history = append(history, a)
		}
	}
	return edits, history
}

// snapshot returns what to plan on; nil, and how long to wait for an event at
// most, when that cannot be said yet.
func (c *Controller) snapshot(ctx context.Context, t *tappv1.TApp, m *memory) (*view, time.Duration, error) {
	logger := klog.FromContext(ctx)
	verdict := m.guard.check(c.stores(), t.Namespace, c.Clock.Now())
	if verdict.wait > 0 {
		logger.V(4).Info("Skipped: the caches lack what was written last", "wait", verdict.wait)
		return nil, verdict.wait, nil
	}
	v, err := c.cached(t)
	if err != nil || !verdict.live {
		return v, 0, err
	}
	if !c.looking.TryLock() {
		return nil, lookAgain, nil
	}
	defer c.looking.Unlock()
	m.guard.looks(c.Clock.Now())
	c.Metrics.staleRepairs.Inc()
	live, err := c.live(ctx, loop.Key{Namespace: t.Namespace, Name: t.Name}, t.UID)
	switch {
	case err != nil:
		return nil, 0, err
	case live == nil:
		return nil, time.Second, nil // its deletion is about to reach the caches
	}
	same := live.same(v)
	if same {
		m.guard.clear() // the marks stand for writes that left no trace
	}
	logger.Info("Planning on a live view: the caches still lack what was written", "cachesCurrent", same)
	return live, 0, nil
}

func (c *Controller) stores() stores {
	return stores{tapps: c.tapps.GetStore(), pods: c.pods.GetStore(), claims: c.claims.GetStore(), revisions: c.revisions.GetStore()}
}

// compute makes the plan, and makes it again with evidence when it asks for
// some. Evidence that cannot be had is an error, and the plan goes on without.
func (c *Controller) compute(ctx context.Context, v *view, noCreationUntil time.Time) (plan.Plan, error) {
	began := time.Now()
	in := plan.Input{TApp: v.tapp, Pods: v.pods, Claims: v.claims, Revisions: v.revisions, Now: c.Clock.Now(), NoCreationUntil: noCreationUntil, Policy: c.Policy}
	p := plan.Compute(in)
	c.Metrics.planDuration.Observe(time.Since(began).Seconds())
	if len(p.Evidence) == 0 {
		return p, nil
	}
	var err error
	in.Nodes, err = c.readNodes(ctx, p.Evidence)
	in.Now = c.Clock.Now()
	return plan.Compute(in), err
}
