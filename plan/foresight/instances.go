package foresight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/advdeployment"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
	"tkestack.io/tapp/plan/tapp"
)

// instanceIDs are the ids of the instances of a unit, as a TApp has them. Types without ids count from 0.
type instanceIDs struct {
	ids.Range
	named bool
}

func idsOf(u *podset.Unit) instanceIDs {
	out := instanceIDs{ids.Range{Count: int(u.Replicas)}, u.Content.DeployType == v1beta1.DeployInPlaceSet || u.Content.DeployType == v1beta1.DeployStatefulSet}
	if out.named {
		out.Start = int(podset.IDsOf(&u.PodSet.PodSetSpec, int64(u.Replicas)).First)
	}
	return out
}

// text of ids; empty where instances have none.
func (i instanceIDs) text() string {
	if !i.named {
		return ""
	}
	return ids.Ranges(i.All())
}

// without are the ids that others has not, and common those that both have.
func (i instanceIDs) without(others instanceIDs) (left, common []int) {
	for _, id := range i.All() {
		if others.Has(id) {
			common = append(common, id)
		} else {
			left = append(left, id)
		}
	}
	return left, common
}

func (i instanceIDs) textOf(some []int) string {
	if !i.named {
		return ""
	}
	return ids.Ranges(some)
}

// scaling of units that were there before goes to all clusters at once.
func (f *foresight) scaling() {
	for i := range f.units {
		u := &f.units[i]
		was := f.before(u)
		if was == nil {
			continue
		}
		is, had := idsOf(u), idsOf(was)
		gone, _ := had.without(is)
		come, _ := is.without(had)
		if len(gone) > 0 {
			f.out.AtOnce = append(f.out.AtOnce, Change{u.Cluster, u.PodSet.Name, effect.ScaleDown, len(gone), had.textOf(gone), whyScaled(had, is)})
		}
		if len(come) > 0 {
			f.out.AtOnce = append(f.out.AtOnce, Change{u.Cluster, u.PodSet.Name, effect.Create, len(come), is.textOf(come), whyScaled(had, is) + f.whenLetGo(u, come)})
		}
	}
}

// whenLetGo is the end of a sentence about ids that come: some of them are those of another cluster.
func (f *foresight) whenLetGo(u *podset.Unit, come []int) string {
	if !podset.SharedIDs(f.units)[u.PodSet.Name] {
		return "" // each cluster has ids of its own
	}
	for i := range f.old {
		other := &f.old[i]
		if other.PodSet.Name == u.PodSet.Name && keyOf(other) != keyOf(u) && slices.ContainsFunc(come, idsOf(other).Has) {
			return fmt.Sprintf("; those that cluster %s has come when it has let go of them", other.Cluster)
		}
	}
	return ""
}

func whyScaled(was, is instanceIDs) string {
	if was.Start != is.Start {
		return fmt.Sprintf("ids begin at %d instead of %d, and replicas are %d", is.Start, was.Start, is.Count)
	}
	return fmt.Sprintf("replicas from %d to %d", was.Count, is.Count)
}

// joining units begin with the stable content at once, wherever they are among the stages.
func (f *foresight) joining(d *rollout.Decision) {
	for i := range f.units {
		if u := &f.units[i]; u.Replicas > 0 && f.joins(u, &d.Units[i]) {
			why := "the podSet is new"
			if f.stable[keyOf(u)].Hash != u.Hash {
				why = "the cluster is new, and begins with the stable content"
			}
			f.out.AtOnce = append(f.out.AtOnce, Change{u.Cluster, u.PodSet.Name, effect.Create, int(u.Replicas), idsOf(u).text(), why + f.whenLetGo(u, idsOf(u).All())})
		}
	}
}

// joins says whether a unit that is new is made with the stable content.
func (f *foresight) joins(u *podset.Unit, v *rollout.Verdict) bool {
	stable := f.stable[keyOf(u)]
	return f.before(u) == nil && stable != nil && v.Content == stable.Hash
}

// content is what another content does to the instances of a unit.
func (f *foresight) content(u *podset.Unit, v *rollout.Verdict) []Change {
	is, was := idsOf(u), f.before(u)
	joins := f.joins(u, v)
	if joins {
		was = f.stable[keyOf(u)]
	}
	if was == nil {
		if u.Replicas == 0 {
			return nil
		}
		return []Change{{u.Cluster, u.PodSet.Name, effect.Create, int(u.Replicas), is.text(), "the podSet is new"}}
	}
	changed := is.All()
	if !joins && u.Content.DeployType != v1beta1.DeployInPlaceSet && v.Content == u.Hash {
		_, changed = is.without(idsOf(was)) // the others are created with it
	}
	if u.Hash == was.Hash || len(changed) == 0 {
		return nil
	}
	c := Change{Cluster: u.Cluster, PodSet: u.PodSet.Name, Instances: len(changed), IDs: is.textOf(changed)}
	if u.Content.DeployType == v1beta1.DeployHelm {
		c.Effect, c.Why = EffectUpgrade, whyUpgraded(was, u)
		return []Change{c}
	}
	change, ok := instanceOf(f.was[keyOf(was)], f.is[keyOf(u)], changed[0])
	switch {
	case !ok: // what the object has, and its pods have not
		return nil
	case u.Content.DeployType != v1beta1.DeployInPlaceSet:
		why := strings.TrimPrefix(change.Why, `template "default" changed: `)
		c.Effect, c.Why = effect.Recreate, fmt.Sprintf("%s; a %s makes new pods", why, kinds[u.Content.DeployType])
	default:
		c.Effect, c.Why = change.Effect, change.Why
	}
	return []Change{c}
}

var kinds = map[string]string{v1beta1.DeployStatefulSet: "StatefulSet", v1beta1.DeployDeployment: "Deployment"}

func whyUpgraded(was, is *podset.Unit) string {
	from, to := was.Content.Chart, is.Content.Chart
	switch {
	case from != nil && to != nil && *from != *to:
		return "another chart, which is not rendered here"
	case was.Version != is.Version:
		return fmt.Sprintf("version from %s to %s; the chart is not rendered here", was.Version, is.Version)
	}
	return "other values; the chart is not rendered here"
}

// tappManifest is the TApp of a unit, as plan/advdeployment makes it; nil: none.
type tappManifest = *tappv1.TApp

// manifestsOf units: what the controllers of their clusters would make of them. Units of other
// types are asked about as if they were TApps, to know what of their template changed.
func manifestsOf(a *v1beta1.AppSet, units []podset.Unit) map[string]tappManifest {
	out := map[string]tappManifest{}
	byCluster := map[string][]podset.Unit{}
	for i := range units {
		u := &units[i]
		if u.Content.Template == nil {
			continue
		}
		if u.Content.DeployType != v1beta1.DeployInPlaceSet {
			t := &tappv1.TApp{}
			t.Namespace, t.Name, t.UID = a.Namespace, u.PodSet.Name, "foresight"
			t.Spec.Template = *u.Content.Template.DeepCopy()
			t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.LabelRelease: u.PodSet.Name}}
			out[keyOf(u)] = t
			continue
		}
		byCluster[u.Cluster] = append(byCluster[u.Cluster], *u)
	}
	for cluster, some := range byCluster { // one after the other; their order does not matter
		d := &v1beta1.AdvDeployment{Spec: podset.Part(a, some)}
		d.Labels = map[string]string{v1beta1.LabelAppSetUID: "foresight"}
		d.Namespace, d.Name, d.UID, d.Finalizers = a.Namespace, a.Name, "foresight", []string{v1beta1.Finalizer}
		plan := advdeployment.Compute(advdeployment.Input{AdvDeployment: d})
		for i := range plan.Actions {
			action := &plan.Actions[i]
			t := &tappv1.TApp{}
			if action.Child.Kind != advdeployment.TApp || runtime.DefaultUnstructuredConverter.FromUnstructured(action.Manifest, t) != nil {
				continue
			}
			t.UID = "foresight"
			out[v1beta1.FoldClusterName(cluster)+"/"+action.Child.Name] = t
		}
	}
	return out
}

// instanceOf tells what becomes of one instance; false: nothing. The pods of a unit have one
// template, so that what holds for one holds for all.
func instanceOf(was, is tappManifest, id int) (effect.Change, bool) {
	if was == nil || is == nil {
		return effect.Change{}, false
	}
	one := is.DeepCopy()
	one.Spec.Replicas, one.Spec.Ordinals = new(int32(1)), &tappv1.Ordinals{Start: int32(id)}
	pod := tapp.PodOf(was, tappv1.DefaultTemplateName, id)
	if pod == nil {
		return effect.Change{}, false
	}
	pod.UID, pod.CreationTimestamp = "pod", metav1.NewTime(time.Unix(0, 0))
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(one, tappv1.GroupVersionKind())}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionTrue},
	}
	for _, c := range tapp.Preview(tapp.Input{TApp: one, Pods: []*corev1.Pod{pod}}) {
		return c, true
	}
	return effect.Change{}, false
}
