package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/controller/write"
	appv1 "tkestack.io/tapp/crd/app/v1"
	plan "tkestack.io/tapp/plan/app"
)

// maxRounds of plans and actions in one sync. One that creates takes two, one that
// finds a name taken three.
const maxRounds = 4

// object is what is remembered of one App from sync to sync. It is lost at every
// restart.
type object struct {
	guard       cache.Guard
	concurrency write.Concurrency
	status      status.Throttle
	news        events.News[plan.Event]
	// overruled: see plan.Input.
	overruled map[plan.Child][]string
	// foreign are the children whose names are somebody else's.
	foreign map[plan.Child]bool
}

func (o *object) overrule(child plan.Child, differences []string) {
	if len(differences) == 0 {
		delete(o.overruled, child)
		return
	}
	if o.overruled == nil {
		o.overruled = map[plan.Child][]string{}
	}
	o.overruled[child] = differences
}

// sync takes one App a step on.
func (c *Controller) sync(ctx context.Context, k loop.Key) (loop.Result, error) {
	stored, exists, err := c.apps.GetStore().GetByKey(k.String())
	if err != nil {
		return loop.Result{}, err
	}
	if !exists {
		c.objects.Forget(k)
		return loop.Result{}, nil
	}
	a := stored.(*appv1.App)
	o := c.objects.Get(k, a.UID)
	v, wait, err := c.observe(ctx, a, o)
	if v == nil || err != nil {
		return loop.Result{After: wait}, err
	}
	p, wrote, err := c.converge(ctx, v, o)
	if err != nil {
		return loop.Result{}, err // the status would tell of half of it
	}
	o.foreign = foreign(v)
	c.tell(v.app, o, p, wrote)
	rest, err := c.putStatus(ctx, v.app, o, &p)
	if err == nil && len(v.refused) > 0 {
		err = refusal(v)
	}
	again := loop.Soonest(p.Wait, rest)
	if len(p.Actions) > 0 && err == nil {
		again = loop.Soonest(again, time.Second) // the rounds did not suffice
	}
	return loop.Result{After: again}, err
}

// tell tells of what a sync found and did. One that leaves nothing to do is told of at once.
func (c *Controller) tell(a *appv1.App, o *object, p plan.Plan, wrote bool) {
	object := corev1.ObjectReference{
		APIVersion: appv1.SchemeGroupVersion.String(), Kind: appv1.Kind,
		Namespace: a.Namespace, Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion,
	}
	for _, e := range o.news.Of(p.Events) {
		c.recorder.Note(object, events.Topic{Type: e.Type, Reason: e.Reason, Why: e.Message})
	}
	if wrote && len(p.Actions) == 0 && p.Wait == 0 {
		c.recorder.Note(object, events.Topic{Type: corev1.EventTypeNormal, Reason: appv1.ReasonSynced, Why: plan.Synced})
	}
	if len(p.Actions) == 0 {
		c.recorder.Settled(a.UID)
	}
}

// observe returns what to plan on; nil, and how long to wait for an event at most,
// when that cannot be said yet.
func (c *Controller) observe(ctx context.Context, a *appv1.App, o *object) (*view, time.Duration, error) {
	return c.observer.Observe(ctx, &o.guard, cache.Sources[*view]{
		Cached: func(ctx context.Context) (*view, error) { return c.cached(ctx, a, o) },
		Live:   func(ctx context.Context) (*view, error) { return c.live(ctx, a) },
	})
}

// converge plans and acts until there is nothing to do, and returns the last plan
// and whether anything was written.
func (c *Controller) converge(ctx context.Context, v *view, o *object) (plan.Plan, bool, error) {
	wrote := false
	for round := 0; ; round++ {
		p := plan.Compute(v.input(o, c.Clock.Now()))
		var errs write.Failures
		batch := write.Batch{Namespace: v.app.Namespace, Over: func() bool { return ctx.Err() != nil || c.stopping.Load() }}
		for _, a := range p.Actions {
			if _, known := v.refused[a.Child]; known && (a.Op != plan.Correct || v.corrected[a.Child]) || round == maxRounds {
				continue
			}
			batch.Writes = append(batch.Writes, write.Write{Op: string(a.Op), Class: string(a.Op) + "/" + string(a.Child.Kind), Do: func() error { return c.act(ctx, v, o, a, &errs) }})
		}
		result := c.writes.Run(ctx, &o.concurrency, batch)
		wrote = wrote || len(result.Done) > 0
		if err := errs.Join(); err != nil || result.Skipped == len(batch.Writes) {
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
