package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// staleAfter is how old what a status calls Ready may be: what caches show is old after
// 2 minutes, and a status is held back for some seconds.
const staleAfter = 2*time.Minute + 30*time.Second

// judge is told of every step of every object, and finds what must not be.
func (w *world) judge(c *cluster, change *apiserver.Change) error {
	r, _ := change.Cause.(*request)
	switch {
	case c == w.hub && change.Resource == grants:
		if g, ok := change.After.(*v1beta1.Confirmation); ok && change.Before == nil {
			w.noteGrant(g)
		}
	case c == w.hub && change.Resource == apiserver.Revisions:
		if record, ok := change.After.(*appsv1.ControllerRevision); ok && r != nil {
			w.noteRecord(record)
		}
	case c == w.hub && change.Resource == apiserver.Secrets:
		w.remember(change)
		if s := change.Object().(*corev1.Secret); r != nil && change.After == nil {
			return w.judgeDropped(s)
		}
	case c == w.hub && change.Resource == appSets:
		if a, ok := change.After.(*v1beta1.AppSet); ok && r == nil {
			w.note(a)
		}
		if r != nil {
			return w.judgeAppSet(r, change)
		}
	case c == w.hub && change.Resource == apiserver.ConfigMaps:
		if m, ok := change.After.(*corev1.ConfigMap); ok && r != nil {
			return w.judgeTombstone(m)
		}
	case r != nil && c != w.hub && change.Resource == apiserver.Leases:
		return w.judgeLease(c, change)
	case r != nil && change.Resource == parts:
		return w.judgePart(c, r, change)
	}
	return nil
}

// remember the identities that are kept with registrations.
func (w *world) remember(change *apiserver.Change) {
	s, ok := change.After.(*corev1.Secret)
	if !ok {
		return
	}
	if uid := s.Annotations[v1beta1.AnnotationClusterUID]; uid != "" {
		if w.kept[s.Name] == nil {
			w.kept[s.Name] = map[types.UID]bool{}
		}
		w.kept[s.Name][types.UID(uid)] = true
	}
}

// judgePart is F2, F7 and, for changes, more: no part goes unless a user took it away, and nothing is written
// to a cluster that is not the registered one, or that another hub has.
func (w *world) judgePart(c *cluster, r *request, change *apiserver.Change) error {
	p := change.Object().(*v1beta1.AdvDeployment)
	if name := clusterOf(p); name != "" && !w.kept[name][c.uid] {
		return fmt.Errorf("F7: the part of cluster %s is written to %s (%s), which was never registered as that", name, c.name, c.uid)
	}
	if err := w.judgeHubs(c, r); err != nil {
		return err
	}
	if err := w.asTold(c, change); err != nil {
		return err
	}
	before, had := change.Before.(*v1beta1.AdvDeployment)
	if after, stays := change.After.(*v1beta1.AdvDeployment); stays && r.Verb != "delete" {
		if err := w.judgeCharts(c, after); err != nil {
			return err
		}
	}
	if after, stays := change.After.(*v1beta1.AdvDeployment); had && stays && after.DeletionTimestamp == nil {
		if err := w.judgeUnits(c, r, before, after); err != nil {
			return err
		}
		if err := w.judgeDelay(c, r, before, after); err != nil {
			return err
		}
	}
	dies := had && before.DeletionTimestamp == nil && (change.After == nil || p.DeletionTimestamp != nil)
	if !dies || r.Verb != "delete" {
		return nil
	}
	owner := types.UID(before.Labels[v1beta1.LabelAppSetUID])
	if owner == "" && before.Annotations[v1beta1.AnnotationAppSet] != "" {
		return nil // somebody took a mark away, and others still say whose it is
	}
	if owner == "" {
		return fmt.Errorf("F2: AdvDeployment %s in %s is deleted, and is no part", p.Name, c.name)
	}
	if !w.tookAway(r, before, c.name) && !w.tookAway(r, before, clusterOf(before)) {
		return fmt.Errorf("F2: the part of AppSet %s in %s is deleted, and no user took it away", owner, c.name)
	}
	return nil
}

// judgeTombstone: nothing is given up that no human named.
func (w *world) judgeTombstone(m *corev1.ConfigMap) error {
	if m.Labels[v1beta1.LabelTombstone] == "" {
		return nil
	}
	for _, change := range w.hub.Tables[appSets].History {
		if a, ok := change.After.(*v1beta1.AppSet); ok && string(a.UID) == m.Data["uid"] && abandons(a, m.Data["cluster"]) {
			return nil
		}
	}
	return fmt.Errorf("F3: the part of AppSet %s in %s is given up, and nobody named it", m.Data["uid"], m.Data["cluster"])
}

func abandons(a *v1beta1.AppSet, cluster string) bool {
	return slices.Contains(strings.Split(a.Annotations[v1beta1.AnnotationAbandonClusters], ","), cluster)
}

// judgeAppSet is F3 and F6.
func (w *world) judgeAppSet(r *request, change *apiserver.Change) error {
	if change.Before == nil {
		return fmt.Errorf("an AppSet is made by the controller")
	}
	before := change.Before.(*v1beta1.AppSet)
	after, stays := change.After.(*v1beta1.AppSet)
	if !stays || slices.Contains(before.Finalizers, v1beta1.Finalizer) && !slices.Contains(after.Finalizers, v1beta1.Finalizer) {
		w.coverage["F3 judged"]++
		if err := w.released(before); err != nil {
			return err
		}
	}
	if !stays || r.Sub != "status" {
		return nil
	}
	w.promised(after).noteStatus(after)
	if err := w.gateTold(after); err != nil {
		return err
	}
	for i := range after.Status.AggrStatus.Clusters {
		if err := w.fresh(r, &after.Status.AggrStatus.Clusters[i]); err != nil {
			return err
		}
	}
	return nil
}

// released is F3: the finalizer goes when no member has a part any more that no human
// gave up. An AppSet that goes with its last finalizer is told of as it was then, without.
func (w *world) released(a *v1beta1.AppSet) error {
	for _, name := range w.names {
		p, ok := apiserver.Find[*v1beta1.AdvDeployment](w.members[name].Store, parts, apiserver.Key(a))
		if !ok || p.Labels[v1beta1.LabelAppSetUID] != string(a.UID) {
			continue
		}
		if w.buried(a.UID, name) || w.buried(a.UID, clusterOf(p)) || w.strange(name) {
			continue
		}
		return fmt.Errorf("F3: AppSet %s goes, and %s has its part", a.Name, name)
	}
	return nil
}

// buried says whether a human gave the part up.
func (w *world) buried(appSet types.UID, cluster string) bool {
	return slices.ContainsFunc(apiserver.All[*corev1.ConfigMap](w.hub.Store, apiserver.ConfigMaps), func(m *corev1.ConfigMap) bool {
		return m.Data["uid"] == string(appSet) && m.Data["cluster"] == cluster
	})
}

// strange says whether the parts of a member can have come back from the dead: it was
// restored from a backup.
func (w *world) strange(member string) bool {
	return slices.ContainsFunc(w.plan.Faults, func(f Fault) bool {
		return f.Kind == restored && f.Step <= w.steps && w.names[f.A%len(w.names)] == member
	})
}

// fresh is F6: what a status calls Ready was heard lately, and it is not dated later than
// what was heard.
func (w *world) fresh(r *request, s *v1beta1.ClusterStatus) error {
	heard := w.heardOf(r.replica, s.Name)
	// With asOf, a cluster's numbers are told as old, and its instances are not in the sums.
	counted := s.AsOf == nil && (s.State == v1beta1.ClusterReady || s.State == v1beta1.ClusterSuspect)
	switch {
	case counted && s.Available > 0 && r.issued.Sub(heard) > staleAfter:
		return fmt.Errorf("F6: %d instances of cluster %s count as available, and it was heard last %s ago", s.Available, s.Name, r.issued.Sub(heard))
	case s.AsOf != nil && s.AsOf.After(heard):
		return fmt.Errorf("F6: cluster %s is told of as of %s, and was heard last at %s", s.Name, s.AsOf.Format(time.TimeOnly), heard.Format(time.TimeOnly))
	}
	return nil
}

// heardOf a registered cluster: by kubeconfigs that were swapped, another one may have
// been.
func (w *world) heardOf(r *replica, name string) time.Time {
	if !slices.ContainsFunc(w.plan.Faults, func(f Fault) bool { return f.Kind == swapped }) {
		return r.heard[name]
	}
	var last time.Time
	for _, at := range r.heard {
		if at.After(last) {
			last = at
		}
	}
	return last
}
