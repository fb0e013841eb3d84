package appset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
	"tkestack.io/tapp/process/parallel"
)

// atOnce is how many writes of one AppSet are under way at most.
const atOnce = 64

// refused is the outcome of a write that a cluster does not take.
const refused = "refused"

// act carries out actions concurrently: a cluster that does not answer delays no other
// one. Failed writes to clusters are noted in the view; the error is one of the hub.
func (c *Controller) act(ctx context.Context, v *view, o *object, actions []plan.Action) error {
	var mu sync.Mutex // of o and v
	var failures write.Failures
	var under parallel.Group
	slots := make(chan struct{}, atOnce)
	for i := range actions {
		a := &actions[i]
		slots <- struct{}{}
		under.Do(func() {
			defer func() { <-slots }()
			if c.stopping.Load() || ctx.Err() != nil {
				return
			}
			part, err := c.write(ctx, v, o, a)
			mu.Lock()
			defer mu.Unlock()
			c.conclude(ctx, &outcome{v, o, a, part}, err, &failures)
		})
	}
	under.Wait()
	return failures.Join()
}

// outcome is an action and what it resulted in.
type outcome struct {
	v      *view
	o      *object
	action *plan.Action
	part   *v1beta1.AdvDeployment
}

// write carries out one action, and returns the part as it is then.
func (c *Controller) write(ctx context.Context, v *view, o *object, a *plan.Action) (*v1beta1.AdvDeployment, error) {
	switch a.Op {
	case plan.Bury:
		return nil, c.bury(ctx, o, *a.Tombstone)
	case plan.Unbury:
		part, err := c.read(ctx, v.key, a.Cluster) // live: the cache may be old
		switch {
		case err != nil:
			return nil, err
		case part != nil && part.Labels[v1beta1.LabelAppSetUID] == string(a.Tombstone.UID) && part.UID != a.UID:
			return part, fmt.Errorf("%w: the part is there after all", write.ErrStale)
		}
		return part, c.unbury(ctx, o, *a.Tombstone)
	}
	carrier, err := c.Fleet.Carrier(a.Cluster)
	if err != nil {
		return nil, err
	}
	namespace, name := v.key.Namespace, v.key.Name
	if err := c.keepCharts(ctx, carrier, a); err != nil {
		return nil, err
	}
	var part *v1beta1.AdvDeployment
	switch a.Op {
	case plan.Delete:
		err = carrier.Delete(ctx, namespace, name, a.UID)
	case plan.Correct, plan.Release:
		part, err = carrier.Patch(ctx, namespace, name, a.Patch)
	default:
		part, err = carrier.Apply(ctx, Apply{Namespace: namespace, Name: name, Manifest: a.Manifest, UID: a.UID, Version: a.Version})
		if apierrors.IsInvalid(err) && a.Observed != nil {
			part, err = carrier.Patch(ctx, namespace, name, a.InPlaceOf())
		}
	}
	if isStale(a, err) { // the name is taken, or the part has changed
		found, readErr := c.read(ctx, v.key, a.Cluster)
		if readErr != nil {
			return nil, readErr
		}
		return found, fmt.Errorf("%w: %s", write.ErrStale, err.Error())
	}
	return part, err
}

// isStale says whether a write came too late.
func isStale(a *plan.Action, err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || write.IsOtherUID(err) || apierrors.IsNotFound(err) && a.Op != plan.Create
}

// conclude updates the view with the result of a write.
func (c *Controller) conclude(ctx context.Context, d *outcome, err error, failures *write.Failures) {
	a, logger := d.action, klog.FromContext(ctx)
	now := c.Clock.Now()
	hub := a.Op == plan.Bury || a.Op == plan.Unbury
	outcome := write.Outcome(ctx, err)
	switch {
	case outcome == write.Done && hub:
		d.showTombstone()
	case outcome == write.Done && a.Op == plan.Delete:
		d.dying(now)
	case outcome == write.Done:
		d.o.overrule(a, d.part, now)
		d.o.see(a.Cluster, d.part, now)
		d.v.put(a.Cluster, d.part)
	case outcome == write.Stale:
		d.o.found(a.Cluster, a.UID, d.part, now)
		d.v.put(a.Cluster, d.part)
	case outcome == write.Interrupted, hub:
		failures.Add(verbs[a.Op], err.Error(), err)
	case isRefusal(err):
		outcome = refused
		d.v.refused[a.Cluster] = plan.Refusal{Words: write.Words(err), NoNamespace: isNoNamespace(err)}
	default:
		d.v.failed[a.Cluster] = fmt.Errorf("cannot %s: %w", verbs[a.Op], err)
	}
	if err == nil && a.Event != nil {
		d.v.told = append(d.v.told, *a.Event)
	}
	if err == nil {
		logger.V(3).Info("Done", "op", a.Op, "cluster", a.Cluster, "why", a.Why)
	} else {
		logger.V(2).Info("Not done", "op", a.Op, "cluster", a.Cluster, "outcome", outcome, "reason", err.Error())
	}
	c.Metrics.actions.WithLabelValues(string(a.Op), outcome).Inc()
}

// isRefusal says whether a cluster answered and refused the write.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !write.IsTransient(err) && !apierrors.IsUnauthorized(err)
}

func isNoNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// dying shows in the view that the part is being deleted.
func (d *outcome) dying(now time.Time) {
	part := d.v.part(d.action.Cluster)
	if part == nil || part.UID != d.action.UID {
		return
	}
	d.o.see(d.action.Cluster, part, now)
	known := d.o.sights[d.action.Cluster]
	known.deleted = true
	d.o.sights[d.action.Cluster] = known
	part = part.DeepCopy()
	part.DeletionTimestamp = new(metav1.NewTime(now))
	d.v.put(d.action.Cluster, part)
}

// showTombstone shows in the view that a tombstone was stored or deleted.
func (d *outcome) showTombstone() {
	t := *d.action.Tombstone
	if d.action.Op == plan.Bury {
		d.v.graves = append(d.v.graves, t)
		return
	}
	d.v.graves = slices.DeleteFunc(slices.Clone(d.v.graves), func(other plan.Tombstone) bool { return nameOf(other) == nameOf(t) })
}

// overrule remembers how a part differs right after it was written, and which fields the
// cluster did not store. See plan.Input.Overruled and Lost.
func (o *object) overrule(a *plan.Action, part *v1beta1.AdvDeployment, now time.Time) {
	delete(o.overruled, a.Cluster)
	delete(o.lost, a.Cluster)
	if a.Manifest != nil {
		if fields := plan.Lost(a.Manifest, part); len(fields) > 0 {
			if o.lost == nil {
				o.lost = map[string]loss{}
			}
			o.lost[a.Cluster] = loss{fields, now}
			return
		}
	}
	if a.Op != plan.Correct {
		return
	}
	if differences := plan.Differences(a.Manifest, part); len(differences) > 0 {
		if o.overruled == nil {
			o.overruled = map[string][]string{}
		}
		o.overruled[a.Cluster] = differences
	}
}

// lossLasts is how long a cluster that did not store a field is unfit. Then its part is
// written again, because no event tells that the cluster got a newer CRD.
const lossLasts = 5 * time.Minute

// loss is what a cluster did not store.
type loss struct {
	fields []string
	at     time.Time
}

// losses are those that are not older than lossLasts.
func (o *object) losses(now time.Time) map[string][]string {
	out := map[string][]string{}
	for cluster, l := range o.lost {
		if now.Sub(l.at) < lossLasts {
			out[cluster] = l.fields
		}
	}
	return out
}

var verbs = map[plan.Op]string{plan.Create: "create the part", plan.Apply: "apply the part", plan.Correct: "correct the part", plan.Release: "set the part free",
	plan.Delete: "delete the part", plan.Bury: "store the tombstone", plan.Unbury: "delete the tombstone"}
