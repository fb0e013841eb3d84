package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/loop"
	appv1 "tkestack.io/tapp/crd/app/v1"
	plan "tkestack.io/tapp/plan/app"
)

// mostRounds of plans and actions in one sync. One that creates takes two, one that
// finds a name taken three.
const mostRounds = 4

// memory is what is remembered of one App from sync to sync. It is lost at every
// restart.
type memory struct {
	guard  guard
	status statusHold
	// overruled: see plan.Input.
	overruled map[plan.Child][]string
	// foreign are the children whose names are somebody else's.
	foreign map[plan.Child]bool
}

func (m *memory) overrule(child plan.Child, differences []string) {
	if len(differences) == 0 {
		delete(m.overruled, child)
		return
	}
	if m.overruled == nil {
		m.overruled = map[plan.Child][]string{}
	}
	m.overruled[child] = differences
}

// sync takes one App a step on.
func (c *Controller) sync(ctx context.Context, k loop.Key) (time.Duration, error) {
	stored, exists, err := c.apps.GetStore().GetByKey(k.String())
	if err != nil {
		return 0, err
	}
	if !exists {
		c.memories.Forget(k)
		return 0, nil
	}
	a := stored.(*appv1.App)
	m := c.memories.Get(k, a.UID)
	v, wait, err := c.observe(ctx, a, m)
	if v == nil || err != nil {
		return wait, err
	}
	p, wrote, err := c.converge(ctx, v, m)
	if err != nil {
		return 0, err // the status would tell of half of it
	}
	m.foreign = foreign(v)
	for _, e := range p.Events {
		c.recorder.Event(v.app, e.Type, e.Reason, e.Message)
	}
	if wrote && len(p.Actions) == 0 && p.Wait == 0 {
		c.recorder.Event(v.app, "Normal", appv1.ReasonSynced, plan.Synced)
	}
	rest, err := c.putStatus(ctx, v.app, m, p)
	if err == nil && len(v.refused) > 0 {
		err = refusal(v)
	}
	again := loop.Soonest(p.Wait, rest)
	if len(p.Actions) > 0 && err == nil {
		again = loop.Soonest(again, time.Second) // the rounds did not suffice
	}
	return again, err
}

// observe returns what to plan on; nil, and how long to wait for an event at most,
// when that cannot be said yet.
func (c *Controller) observe(ctx context.Context, a *appv1.App, m *memory) (*view, time.Duration, error) {
	wait, live := m.guard.check(c, a.Namespace, c.Clock.Now())
	switch {
	case wait > 0:
		klog.FromContext(ctx).V(4).Info("Skipped: the caches lack what was written last", "wait", wait)
		return nil, wait, nil
	case !live:
		v, err := c.cached(ctx, a, m)
		return v, 0, err
	}
	c.Metrics.staleRepairs.Inc()
	klog.FromContext(ctx).Info("Planning on a live view: the caches still lack what was written")
	v, err := c.live(ctx, a)
	if v == nil && err == nil {
		return nil, time.Second, nil // its deletion is about to reach the caches
	}
	return v, 0, err
}

// converge plans and acts until there is nothing to do, and returns the last plan
// and whether anything was written.
func (c *Controller) converge(ctx context.Context, v *view, m *memory) (plan.Plan, bool, error) {
	wrote := false
	for round := 0; ; round++ {
		p := plan.Compute(v.input(m, c.Clock.Now()))
		var errs []error
		acted := false
		for _, a := range p.Actions {
			if _, known := v.refused[a.Child]; known || round == mostRounds || ctx.Err() != nil || c.stopping.Load() {
				continue
			}
			result, err := c.act(ctx, v, m, a)
			acted = true
			wrote = wrote || result == done
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil || !acted {
			return p, wrote, err
		}
	}
}

// refusal is the error of a sync that the API server refused a write of, so that it
// is tried again, and later each time.
func refusal(v *view) error {
	var errs []error
	for child, why := range v.refused {
		errs = append(errs, fmt.Errorf("%s was refused: %s", child, why))
	}
	return errors.Join(errs...)
}

// foreign are the names that a view shows to be somebody else's.
func foreign(v *view) map[plan.Child]bool {
	out := map[plan.Child]bool{}
	for _, child := range children(v.app) {
		if o := v.get(child); o != nil && !isOurs(o, v.app) {
			out[child] = true
		}
	}
	return out
}
