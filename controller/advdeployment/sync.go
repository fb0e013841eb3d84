package advdeployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/release"
	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/advdeployment"
)

// maxRounds bounds the plans of one sync. To create takes three (finalizer, children, nothing
// left to do), and a name that is taken takes one more.
const maxRounds = 5

// object is what is remembered of one AdvDeployment from sync to sync. It is lost at
// every restart.
type object struct {
	guard       cache.Guard
	concurrency write.Concurrency
	status      status.Throttle
	news        events.News[plan.Event]
	// overruled: see plan.Input.
	overruled map[plan.Child][]string
	// foreign are the children whose names are somebody else's.
	foreign map[plan.Child]bool
	// releases is what is known of Helm releases, and last the metadata that users may change,
	// as of the last sync.
	releases release.State
	last     marks
}

// marks tell whether a user has changed an object. Writes of its status do not change them.
type marks struct {
	generation          int64
	annotations, labels map[string]string
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

// patience is how long to wait for the event of a conflicting write, before the
// AdvDeployment is synced without it.
const patience = 5 * time.Second

// sync plans for one AdvDeployment, carries the plan out, and writes the status.
func (c *Controller) sync(ctx context.Context, k loop.Key) (loop.Result, error) {
	stored, exists, err := c.deployments.GetStore().GetByKey(k.String())
	if err != nil {
		return loop.Result{}, err
	}
	if !exists {
		c.objects.Forget(k)
		return loop.Result{}, nil
	}
	d := stored.(*v1beta1.AdvDeployment)
	o := c.objects.Get(k, d.UID)
	v, wait, err := c.observe(ctx, d, o)
	if v == nil || err != nil {
		return loop.Result{After: wait}, err
	}
	v, p, wrote, err := c.converge(ctx, v, o)
	switch { // no status: it would tell of an unfinished sync
	case err != nil:
		return loop.Result{}, err
	case v == nil || v.outdated: // the event of the conflicting write enqueues it; the timer is for the case that there is none
		return loop.Result{After: patience}, nil
	}
	o.foreign = foreign(v)
	c.tell(v.deployment, o, p, wrote)
	rest, err := c.putStatus(ctx, v.deployment, o, &p)
	if err == nil {
		err = errors.Join(refusal(v), refusals(o))
	}
	for i := range p.Releases {
		o.releases.Expire(p.Releases[i].Name, p.Releases[i].Polls)
	}
	if len(p.Releases) > 0 {
		rest = loop.Soonest(rest, release.Resync)
	}
	again := loop.Soonest(p.Wait, rest)
	if len(p.Actions) > 0 && err == nil {
		again = loop.Soonest(again, time.Second) // the rounds did not suffice
	}
	return loop.Result{After: again}, err
}

// tell records the events of a sync. If nothing is left to do, they are sent at once.
func (c *Controller) tell(d *v1beta1.AdvDeployment, o *object, p plan.Plan, wrote bool) {
	about := referenceTo(d)
	for _, e := range o.news.Of(p.Events) {
		c.recorder.Note(about, events.Topic{Type: e.Type, Reason: e.Reason, Why: e.Message})
	}
	if wrote && len(p.Actions) == 0 && p.Wait == 0 && d.DeletionTimestamp == nil && !meta.IsStatusConditionTrue(p.Status.Conditions, v1beta1.ConditionStalled) {
		c.recorder.Note(about, events.Topic{Type: corev1.EventTypeNormal, Reason: v1beta1.ReasonSynced, Why: plan.Synced})
	}
	if len(p.Actions) == 0 {
		c.recorder.Settled(d.UID)
	}
}

// referenceTo an AdvDeployment, for events.
func referenceTo(d *v1beta1.AdvDeployment) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.KindAdvDeployment,
		Namespace: d.Namespace, Name: d.Name, UID: d.UID, ResourceVersion: d.ResourceVersion,
	}
}

// observe returns what to plan on; nil, and how long to wait for an event at most, when
// that cannot be said yet.
func (c *Controller) observe(ctx context.Context, d *v1beta1.AdvDeployment, o *object) (*view, time.Duration, error) {
	return c.observer.Observe(ctx, &o.guard, cache.Sources[*view]{
		Cached: func(ctx context.Context) (*view, error) { return c.cached(ctx, d, o) },
		Live:   func(ctx context.Context) (*view, error) { return c.live(ctx, d) },
	})
}

// converge plans and acts until there is nothing to do, and returns the last view and
// plan, and whether anything was written. The view is nil once the AdvDeployment is gone.
func (c *Controller) converge(ctx context.Context, v *view, o *object) (*view, plan.Plan, bool, error) {
	wrote := false
	if err := c.seeReleases(ctx, v, o); err != nil {
		return v, plan.Plan{}, false, err
	}
	for round, turns := 0, 0; ; turns++ {
		p, err := c.plan(ctx, v, o)
		if err != nil || turns > maxTurns {
			return v, p, wrote, err
		}
		if !v.isLive && slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Absent }) {
			if v, err = c.live(ctx, v.deployment); v == nil || err != nil {
				return nil, p, wrote, err
			}
			if err := c.seeReleases(ctx, v, o); err != nil {
				return v, p, wrote, err
			}
			continue
		}
		batch, errs := c.batch(ctx, v, o, &p, round >= maxRounds)
		if len(batch.Writes) > 0 {
			round++
		}
		result := c.writes.Run(ctx, &o.concurrency, batch)
		wrote = wrote || len(result.Done) > 0
		if v.gone() {
			return nil, p, wrote, errs.Join()
		}
		if err := errs.Join(); err != nil {
			return v, p, wrote, err
		}
		stepped, err := c.stepReleases(ctx, v, o, &p)
		wrote = wrote || stepped
		if err != nil || !stepped && result.Skipped == len(batch.Writes) {
			return v, p, wrote, err
		}
	}
}

// plan stores the revisions of a plan, reads what it asks for about releases, and plans again
// until both are done.
func (c *Controller) plan(ctx context.Context, v *view, o *object) (plan.Plan, error) {
	for {
		in, err := c.input(v, o)
		if err != nil {
			return plan.Plan{}, err
		}
		p := plan.Compute(in)
		asked, err := c.showReleases(ctx, v, o, &p)
		if err != nil {
			return p, err
		}
		if asked {
			continue
		}
		done, err := c.keep(ctx, v, o, &p)
		if err != nil || done {
			return p, err
		}
		if v.outdated {
			p.Actions, p.Releases = nil, nil
			return p, nil
		}
	}
}

// batch are the writes of a plan. over: the sync has made as many plans as it may, and starts
// no further write.
func (c *Controller) batch(ctx context.Context, v *view, o *object, p *plan.Plan, over bool) (write.Batch, *write.Failures) {
	errs := &write.Failures{}
	batch := write.Batch{Namespace: v.deployment.Namespace, Over: func() bool { return ctx.Err() != nil || c.stopping.Load() }}
	for _, a := range p.Actions {
		if _, known := v.refused[a.Child]; known && (a.Op != plan.Correct || v.corrected[a.Child]) || over {
			continue
		}
		batch.Writes = append(batch.Writes, write.Write{Op: string(a.Op), Class: string(a.Op) + "/" + string(a.Child.Kind), Do: func() error { return c.act(ctx, v, o, a, errs) }})
	}
	return batch, errs
}

// refusal is the error of a sync in which the API server refused a write. It is retried with
// back-off.
func refusal(v *view) error {
	var errs []error
	for _, child := range slices.SortedFunc(maps.Keys(v.refused), func(a, b plan.Child) int { return compare(a, b) }) {
		errs = append(errs, fmt.Errorf("%s was refused: %s", child, v.refused[child]))
	}
	return errors.Join(errs...)
}

// foreign are the children whose names are taken by objects of others.
func foreign(v *view) map[plan.Child]bool {
	out := map[plan.Child]bool{}
	for _, child := range plan.Children(v.deployment) {
		if o := v.children[child]; o != nil && !v.isOurs(o) {
			out[child] = true
		}
	}
	return out
}
