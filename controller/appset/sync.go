package appset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
)

// maxRounds of plans and actions in one sync. One that creates takes four.
const maxRounds = 8

// object is what is remembered of one AppSet from sync to sync. It is lost at every
// restart.
type object struct {
	guard  cache.Guard
	status status.Throttle
	news   events.News[plan.Event]
	// sights of parts by cluster: see parts.go.
	sights map[string]sight
	// waited is when a sync last waited for a cluster in vain.
	waited time.Time
	// overruled: see plan.Input.
	overruled map[string][]string
	// lost are the fields that clusters did not store, and when that was found.
	lost map[string]loss
}

// found notes the result of a live read where the cache had a part with this UID; nil: there
// is no part.
func (o *object) found(cluster string, expected types.UID, part *v1beta1.AdvDeployment, at time.Time) {
	o.see(cluster, part, at)
	if part != nil || expected == "" {
		return
	}
	if o.sights == nil {
		o.sights = map[string]sight{}
	}
	o.sights[cluster] = sight{gone: expected, at: at}
}

// see notes what a write or a live read showed; nil: there is no part.
func (o *object) see(cluster string, part *v1beta1.AdvDeployment, at time.Time) {
	if part == nil {
		delete(o.sights, cluster)
		return
	}
	if o.sights == nil {
		o.sights = map[string]sight{}
	}
	o.sights[cluster] = sight{part: part, at: at}
}

// sync plans for one AppSet, carries the plan out, and writes the status.
func (c *Controller) sync(ctx context.Context, k loop.Key) (loop.Result, error) {
	stored, exists, err := c.appSets.GetStore().GetByKey(k.String())
	if err != nil {
		return loop.Result{}, err
	}
	if !exists {
		return loop.Result{}, c.bereaved(ctx, k)
	}
	a := stored.(*v1beta1.AppSet)
	o := c.objects.Get(k, a.UID)
	v, wait, err := c.observer.Observe(ctx, &o.guard, cache.Sources[*view]{
		Cached: func(ctx context.Context) (*view, error) { return c.look(ctx, k, a, o), nil },
		Live:   func(ctx context.Context) (*view, error) { return c.live(ctx, a, o) },
	})
	if v == nil || err != nil {
		return loop.Result{After: wait}, err
	}
	if err := c.chartsOf(ctx, v); err != nil {
		return loop.Result{}, err
	}
	p, err := c.converge(ctx, v, o)
	if v.timedOut() {
		o.waited = c.Clock.Now()
	}
	c.tell(a, append(v.told, o.news.Of(p.Events)...))
	switch { // no status: it would tell of an unfinished sync
	case err != nil:
		return loop.Result{}, err
	case v.app == nil: // the event of the conflicting write enqueues it; the timer is for the case that there is none
		return loop.Result{After: patience}, nil
	}
	if len(p.Actions) == 0 {
		c.recorder.Settled(a.UID)
	}
	rest, err := c.putStatus(ctx, v.app, o, &p)
	again := loop.Soonest(p.Wait, rest)
	if failed(v.charts) {
		again = loop.Soonest(again, chartRetry)
	}
	if len(o.sights) > 0 { // look again until the caches have it
		again = loop.Soonest(again, patience)
	}
	return loop.Result{After: again}, errors.Join(err, v.failure())
}

// bereaved handles a name without an AppSet. Parts that were given up are deleted. Other parts
// are only told of: the AppSet may be missing because the hub was restored from an old backup.
func (c *Controller) bereaved(ctx context.Context, k loop.Key) error {
	o := c.objects.Get(k, "")
	v := c.look(ctx, k, nil, o)
	in := v.input(o, c.FleetID(), c.Clock.Now())
	if err := c.act(ctx, v, o, plan.Returned(in)); err != nil {
		return err
	}
	if err := v.failure(); err != nil {
		return err
	}
	if len(c.Fleet.Parts(k.Namespace, k.Name)) == 0 && len(v.graves) == 0 {
		c.parts.remove(k)
		c.objects.Forget(k)
	}
	return nil
}

// converge plans and acts until there is nothing to do, and returns the last plan.
func (c *Controller) converge(ctx context.Context, v *view, o *object) (plan.Plan, error) {
	for round := 0; ; round++ {
		p := c.plan(v, o)
		if ctx.Err() != nil || c.stopping.Load() {
			return p, ctx.Err()
		}
		if round == maxRounds && (p.Own != nil || p.Keep != nil || len(p.Actions) > 0 || p.Forget != nil) {
			return p, fmt.Errorf("after %d rounds there is still something to do", maxRounds)
		}
		if again, err := c.carryOut(ctx, v, o, &p); err != nil || !again {
			return p, err
		}
	}
}

// carryOut does the first of these that the plan has: write the AppSet, store revisions, act
// in clusters. It says whether to plan again.
func (c *Controller) carryOut(ctx context.Context, v *view, o *object, p *plan.Plan) (again bool, err error) {
	switch {
	case p.Own != nil:
		err := c.putOwn(ctx, v, o, p.Own)
		return v.app != nil, err
	case p.Keep != nil:
		now, current, err := c.kept(o).Keep(ctx, p.Keep, v.revisions)
		if err != nil || !current {
			v.app = nil // its event is on the way, or it is looked at again
			return false, err
		}
		v.revisions = now
		return true, nil
	}
	left, err := c.kept(o).Forget(ctx, p.Obsolete, v.revisions)
	if err != nil {
		return false, err
	}
	v.revisions = left
	actions := slices.DeleteFunc(p.Actions, func(a plan.Action) bool {
		_, refused := v.refused[a.Cluster]
		return refused || v.failed[a.Cluster] != nil || v.unread[a.Cluster]
	})
	switch {
	case v.timedOut(): // the next sync knows what was changed meanwhile
		return false, nil
	case len(actions) > 0:
		return true, c.act(ctx, v, o, actions)
	case p.Forget == nil || len(v.unread) > 0:
		return false, nil
	}
	err = c.putForget(ctx, v, o, p.Forget)
	return v.app != nil, err
}

// plan runs as many plans at a time as there are processors. More would not be faster, and
// each plan of a large fleet takes megabytes, and so do the parts that it is made of. There are
// more workers than that, because they mostly wait for clusters.
func (c *Controller) plan(v *view, o *object) plan.Plan {
	c.planning <- struct{}{}
	defer func() { <-c.planning }()
	return plan.Compute(v.input(o, c.FleetID(), c.Clock.Now()))
}

// failure is the error of a sync in which writes failed. It is retried with back-off.
func (v *view) failure() error {
	var errs []error
	for _, cluster := range slices.Sorted(maps.Keys(v.failed)) {
		errs = append(errs, fmt.Errorf("cluster %s: %w", cluster, v.failed[cluster]))
	}
	for _, cluster := range slices.Sorted(maps.Keys(v.refused)) {
		errs = append(errs, fmt.Errorf("cluster %s refused the part: %s", cluster, v.refused[cluster].Words))
	}
	return errors.Join(errs...)
}

// tell tells of what a sync found and did.
func (c *Controller) tell(a *v1beta1.AppSet, all []plan.Event) {
	object := corev1.ObjectReference{
		APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.KindAppSet,
		Namespace: a.Namespace, Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion,
	}
	for _, e := range all {
		c.recorder.Note(object, events.Topic{Type: e.Type, Reason: e.Reason, Why: e.Message})
	}
}
