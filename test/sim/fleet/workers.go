package fleet

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/test/sim/apiserver"
)

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
		has = &running{podSets: map[string]*set{}}
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
		return func() {
			s := has.podSets[apiserver.SortedKeys(has.podSets)[0]]
			w.happens(c, p, s, effect.ScaleDown, len(s.instances))
			delete(has.podSets, s.name)
		}
	case p.DeletionTimestamp != nil && ours:
		return finalizers(without(v1beta1.Finalizer))
	case p.DeletionTimestamp != nil && slices.Contains(p.Finalizers, apiserver.Foreground):
		return finalizers(without(apiserver.Foreground))
	case p.DeletionTimestamp != nil:
		return nil
	case !ours:
		return finalizers(func(list []string) []string { return append(slices.Clone(list), v1beta1.Finalizer) })
	}
	units := w.placed(c, p)
	if has.generation != p.Generation {
		return func() { w.apply(c, has, p, units) }
	}
	if s := has.leftOver(); s != nil {
		return func() {
			w.happens(c, p, s, effect.ScaleDown, len(s.instances))
			delete(has.podSets, s.name)
		}
	}
	if status := has.status(p, w.is(workerWrong, c.name)); !equality.Semantic.DeepEqual(status, p.Status) {
		return func() {
			if !w.is(workerWrong, c.name) {
				w.noteDone(c, p, has)
			}
			w.noteWell(p)
			_, _ = c.Update(parts, apiserver.Key(p), "status", w.as("worker"), func(o object) error {
				o.(*v1beta1.AdvDeployment).Status = status
				return nil
			})
		}
	}
	return nil
}

// placed are the units of a part. They are looked at far more often than they change.
func (w *world) placed(c *cluster, p *v1beta1.AdvDeployment) []podset.Unit {
	key := fmt.Sprint(c.name, c.births, w.restores, p.UID, p.ResourceVersion)
	units, known := w.units[key]
	if !known {
		units, _, _ = podset.Placed(p)
		w.units[key] = units
	}
	return units
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
