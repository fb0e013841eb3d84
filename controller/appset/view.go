package appset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
)

// view is what the planner sees of one AppSet, or of the parts of one that is gone. Its
// objects are shared with the caches: nobody may write to them.
type view struct {
	key types.NamespacedName
	app *v1beta1.AppSet // nil: there is none

	// clusters with what a write or a live read showed of their parts; cached are the other parts.
	clusters map[string]plan.Cluster
	cached   map[string]func() *v1beta1.AdvDeployment
	graves   []plan.Tombstone
	// charts are the results of fetching charts, by place.
	charts map[string]plan.Chart
	// revisions of the AppSet, and confirmations of its gates.
	revisions     []*appsv1.ControllerRevision
	confirmations []*v1beta1.Confirmation
	// refused says why clusters refused a write in this sync, and failed why one did not get
	// through.
	refused map[string]plan.Refusal
	failed  map[string]error
	// unread are clusters whose part could not be read live.
	unread map[string]bool
	// told are the events of what was done in this sync.
	told []plan.Event
}

// Versions are the resourceVersions of the hub's objects in the view, by UID.
func (v *view) Versions() map[types.UID]string {
	if v.app == nil {
		return nil
	}
	return map[types.UID]string{v.app.UID: v.app.ResourceVersion}
}

func (v *view) input(o *object, fleet string, now time.Time) plan.Input {
	in := plan.Input{AppSet: v.app, Fleet: fleet, Charts: v.charts, Tombstones: v.graves, Revisions: v.revisions, Confirmations: v.confirmations, Overruled: o.overruled, Lost: o.losses(now), Refused: v.refused, Now: now}
	for _, name := range slices.Sorted(maps.Keys(v.clusters)) {
		one := v.clusters[name]
		one.Part = v.part(name)
		in.Clusters = append(in.Clusters, one)
	}
	return in
}

// part that a cluster has; nil: none.
func (v *view) part(cluster string) *v1beta1.AdvDeployment {
	if read := v.cached[cluster]; read != nil {
		return read()
	}
	return v.clusters[cluster].Part
}

func (v *view) hasPart(cluster string) bool {
	return v.cached[cluster] != nil || v.clusters[cluster].Part != nil
}

// put sets the part that a cluster has now.
func (v *view) put(cluster string, part *v1beta1.AdvDeployment) {
	delete(v.cached, cluster)
	one := v.clusters[cluster]
	one.Part = part
	v.clusters[cluster] = one
}

// markStale makes a cluster uncertain, because its part could not be read live.
func (v *view) markStale(cluster string) {
	one := v.clusters[cluster]
	one.Certain = false
	v.clusters[cluster] = one
}

// timedOut says whether a cluster that was asked after the first plan did not answer. Then the
// sync waits for no other one, so that it takes no longer than the timeout of one request.
func (v *view) timedOut() bool {
	for _, err := range v.failed {
		var answer apierrors.APIStatus
		if !errors.As(err, &answer) {
			return true
		}
	}
	return false
}

// look makes a view from the caches, and from what was written to clusters lately.
func (c *Controller) look(ctx context.Context, key types.NamespacedName, a *v1beta1.AppSet, o *object) *view {
	v := &view{key: key, app: a, clusters: map[string]plan.Cluster{}, cached: map[string]func() *v1beta1.AdvDeployment{}, refused: map[string]plan.Refusal{}, failed: map[string]error{}, unread: map[string]bool{}}
	for _, p := range c.Fleet.Parts(key.Namespace, key.Name) {
		v.cached[p.Cluster] = p.Read
	}
	for _, t := range c.allTombstones() {
		if t.AppSet == key {
			v.graves = append(v.graves, t)
		}
	}
	concerned := map[string]bool{}
	if a != nil {
		v.revisions, v.confirmations = c.revisionsOf(a), c.confirmationsOf(a)
		for _, name := range plan.Concerned(a) {
			concerned[name] = true
		}
	}
	for name := range v.cached {
		concerned[name] = true
	}
	for _, m := range c.Fleet.Members() {
		if len(v.graves) > 0 { // a cluster that returned may have another name
			concerned[m.Name] = true
		}
	}
	var behind []string
	for _, name := range slices.Sorted(maps.Keys(concerned)) {
		one := plan.Cluster{Name: name, State: v1beta1.ClusterUnregistered}
		if m, ok := c.Fleet.Member(name); ok {
			one = plan.Cluster{Name: name, UID: m.UID, Replaces: types.UID(m.Meta[v1beta1.LabelReplacesUID]), Labels: m.Meta, State: m.State, Reason: m.Reason, Message: m.Message, AsOf: m.AsOf, Certain: m.Fresh}
		}
		if _, seen := o.sights[name]; seen {
			one.Part = v.part(name)
			delete(v.cached, name)
			late := false
			if one, late = c.current(o, one); late {
				behind = append(behind, name)
			}
		}
		v.clusters[name] = one
	}
	c.readBehind(ctx, v, o, behind)
	return v
}

// live view of an AppSet; nil if it does not exist any more.
func (c *Controller) live(ctx context.Context, a *v1beta1.AppSet, o *object) (*view, error) {
	now, err := c.AppSets.AppSets(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && now.UID != a.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the AppSet live: %w", err)
	}
	revisions, err := c.Apps.ControllerRevisions(a.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelAppSetUID + "=" + string(a.UID)})
	if err != nil {
		return nil, fmt.Errorf("reading the AppSet's revisions live: %w", err)
	}
	v := c.look(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Name}, now, o)
	v.revisions = nil
	for i := range revisions.Items {
		v.revisions = append(v.revisions, &revisions.Items[i])
	}
	return v, nil
}
