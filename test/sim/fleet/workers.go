package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/test/sim/apiserver"
)

// running is what a worker runs of a part: podSets by name.
type running struct {
	podSets map[string]*instances
}

// instances of a podSet: how many there are, and how many of them have the newest content.
type instances struct {
	count, updated int32
	content        string
}

// errand is the next thing that the worker of a member does; nil: nothing.
func (w *world) errand(c *cluster) func() {
	if w.is(workerLate, c.name) || w.is(down, c.name) {
		return nil
	}
	for _, p := range apiserver.All[*v1beta1.AdvDeployment](c.Store, parts) {
		if do := w.carryOut(c, p); do != nil {
			return do
		}
	}
	return nil
}

// carryOut is the next step of one part.
func (w *world) carryOut(c *cluster, p *v1beta1.AdvDeployment) func() {
	has := w.runs[p.UID]
	if has == nil {
		has = &running{podSets: map[string]*instances{}}
		w.runs[p.UID] = has
	}
	finalizers := func(edit func([]string) []string) func() {
		return func() {
			_, _ = c.Update(parts, apiserver.Key(p), "", w.as("worker"), func(o object) error {
				o.SetFinalizers(edit(o.GetFinalizers()))
				return nil
			})
		}
	}
	without := func(name string) func([]string) []string {
		return func(list []string) []string {
			return slices.DeleteFunc(slices.Clone(list), func(f string) bool { return f == name })
		}
	}
	ours := slices.Contains(p.Finalizers, v1beta1.Finalizer)
	switch {
	case p.DeletionTimestamp != nil && len(has.podSets) > 0:
		return func() { delete(has.podSets, apiserver.SortedKeys(has.podSets)[0]) }
	case p.DeletionTimestamp != nil && ours:
		return finalizers(without(v1beta1.Finalizer))
	case p.DeletionTimestamp != nil && slices.Contains(p.Finalizers, apiserver.Foreground):
		return finalizers(without(apiserver.Foreground))
	case p.DeletionTimestamp != nil:
		return nil
	case !ours:
		return finalizers(func(list []string) []string { return append(slices.Clone(list), v1beta1.Finalizer) })
	}
	if do := has.step(p); do != nil {
		return do
	}
	if status := has.status(p, w.is(workerWrong, c.name)); !equality.Semantic.DeepEqual(status, p.Status) {
		return func() {
			_, _ = c.Update(parts, apiserver.Key(p), "status", w.as("worker"), func(o object) error {
				o.(*v1beta1.AdvDeployment).Status = status
				return nil
			})
		}
	}
	return nil
}

// step towards what the part says: one instance at a time.
func (r *running) step(p *v1beta1.AdvDeployment) func() {
	wanted := map[string]bool{}
	for i := range p.Spec.Topology.PodSets {
		s := &p.Spec.Topology.PodSets[i]
		wanted[s.Name] = true
		has := r.podSets[s.Name]
		if has == nil {
			return func() { r.podSets[s.Name] = &instances{content: contentOf(p, s)} }
		}
		want := int32(s.Replicas.IntValue())
		switch {
		case has.content != contentOf(p, s):
			return func() { has.content, has.updated = contentOf(p, s), 0 }
		case has.count < want:
			return func() { has.count++; has.updated++ }
		case has.count > want:
			return func() { has.count--; has.updated = min(has.updated, has.count) }
		case has.updated < has.count && !p.Spec.UpdateStrategy.Paused && !s.Paused:
			return func() { has.updated++ }
		}
	}
	for _, name := range apiserver.SortedKeys(r.podSets) {
		if !wanted[name] {
			return func() { delete(r.podSets, name) }
		}
	}
	return nil
}

// contentOf a podSet, as far as these tests change it.
func contentOf(p *v1beta1.AdvDeployment, s *v1beta1.PlacedPodSet) string {
	image := s.Image
	if t := p.Spec.PodSpec.Template; t != nil && image == "" && len(t.Spec.Containers) > 0 {
		image = t.Spec.Containers[0].Image
	}
	return image + " " + s.Version + " " + s.Revision
}

// status of a part; one that is wrong says that nothing runs.
func (r *running) status(p *v1beta1.AdvDeployment, wrong bool) v1beta1.AdvDeploymentStatus {
	out := *p.Status.DeepCopy()
	out.ObservedGeneration = p.Generation
	sums := v1beta1.AdvDeploymentAggregate{Status: v1beta1.PhaseRunning}
	contents := map[string]string{}
	units, _, _ := podset.Placed(p)
	for i := range units {
		contents[units[i].PodSet.Name] = units[i].Hash
	}
	for i := range p.Spec.Topology.PodSets {
		s := &p.Spec.Topology.PodSets[i]
		has := r.podSets[s.Name]
		if has == nil {
			has = &instances{}
		}
		one := v1beta1.PodSetStatus{Name: s.Name, Desired: int32(s.Replicas.IntValue()), Available: has.count, Version: s.Version,
			Observed: true, Revision: contents[s.Name], Budget: s.MaxUnavailable}
		if wrong {
			one.Available = 0
		}
		one.UnAvailable = one.Desired - one.Available
		one.Update, one.Current = new(has.updated), new(has.count)
		sums.Desired += one.Desired
		sums.Available += one.Available
		sums.UnAvailable += one.UnAvailable
		sums.PodSets = append(sums.PodSets, one)
	}
	out.AggrStatus = sums
	ready := metav1.ConditionTrue
	if sums.Available != sums.Desired {
		ready = metav1.ConditionFalse
	}
	if len(out.Conditions) == 0 || out.Conditions[0].Status != ready {
		out.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: ready, Reason: v1beta1.ReasonSynced, ObservedGeneration: p.Generation}}
	}
	return out
}

// collect is the hub's garbage collection: of AppSets that are deleted in the foreground
// or orphaned, and of revisions whose AppSet is gone.
func (w *world) collect() func() {
	for _, o := range apiserver.All[object](w.hub.Store, apiserver.Revisions) {
		for _, ref := range o.GetOwnerReferences() {
			if owner := w.hub.Get(appSets, apiserver.KeyOf(o.GetNamespace(), ref.Name)); owner == nil || owner.GetUID() != ref.UID {
				return func() { _, _ = w.hub.Remove(apiserver.Revisions, apiserver.Key(o), metav1.DeleteOptions{}, w.as("gc")) }
			}
		}
	}
	for _, a := range apiserver.All[*v1beta1.AppSet](w.hub.Store, appSets) {
		for _, f := range []string{apiserver.Foreground, apiserver.Orphan} {
			if a.DeletionTimestamp != nil && slices.Contains(a.Finalizers, f) {
				return func() {
					_, _ = w.hub.Update(appSets, apiserver.Key(a), "", w.as("gc"), func(o object) error {
						o.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(x string) bool { return x == f }))
						return nil
					})
				}
			}
		}
	}
	return nil
}
