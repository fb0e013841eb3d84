package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// heal ends all faults, and has users and operators put right what only they can.
func (w *world) heal() {
	w.lift()
	w.armed = nil
	w.follow()
	w.lift()
	w.armed = nil
	for _, name := range w.names {
		w.register(w.members[name])
	}
	for _, a := range apiserver.All[*v1beta1.AppSet](w.hub.Store, appSets) {
		_, _ = w.hub.Update(appSets, apiserver.Key(a), "", w.as("user"), func(o object) error {
			a := o.(*v1beta1.AppSet)
			a.Spec.UpdateStrategy.Paused = false
			if main := &a.Spec.PodSpec.Template.Spec.Containers[0]; isBad(main.Image) {
				main.Image = image(100)
			}
			if a.DeletionTimestamp == nil {
				delete(a.Annotations, v1beta1.AnnotationAbandonClusters)
			}
			if w.lost {
				annotate(a, v1beta1.AnnotationAcceptGeneration, strconv.Itoa(1000))
			}
			return nil
		})
	}
	for _, name := range w.names {
		w.clear(w.members[name])
	}
	if !slices.ContainsFunc(w.alive(), func(r *replica) bool { return !r.stopping }) {
		_ = w.start()
	}
	w.say("from here on nothing goes wrong")
}

// accept has the operator accept a cluster that is there in the place of an older one;
// nil: there is no need to.
func (w *world) accept(c *cluster) func() {
	s, ok := apiserver.Find[*corev1.Secret](w.hub.Store, apiserver.Secrets, apiserver.KeyOf(registry, c.name))
	if was := w.wasCluster(c); ok && was != "" && s.Labels[v1beta1.LabelReplacesUID] != was && s.Annotations[v1beta1.AnnotationClusterUID] == string(c.uid) {
		return func() {
			w.reregister(c.name, func(s *corev1.Secret) { s.Labels[v1beta1.LabelReplacesUID] = was })
		}
	}
	if !ok || s.Annotations[v1beta1.AnnotationClusterUID] == "" || s.Annotations[v1beta1.AnnotationClusterUID] == string(c.uid) {
		return nil
	}
	return func() {
		w.reregister(c.name, func(s *corev1.Secret) {
			s.Labels[v1beta1.LabelReplacesUID] = s.Annotations[v1beta1.AnnotationClusterUID]
			delete(s.Annotations, v1beta1.AnnotationClusterUID)
		})
	}
}

// wasCluster is the UID of an earlier cluster that an AppSet knows by the name of this one;
// empty: none does.
func (w *world) wasCluster(c *cluster) string {
	for _, a := range apiserver.All[*v1beta1.AppSet](w.hub.Store, appSets) {
		for _, entry := range strings.Split(a.Annotations[v1beta1.AnnotationClusters], ",") {
			if name, uid, _ := strings.Cut(entry, "="); name == c.name && uid != "" && uid != string(c.uid) {
				return uid
			}
		}
	}
	return ""
}

// clear a member of what stands in the way: parts that somebody took the marks from.
func (w *world) clear(c *cluster) {
	for _, p := range apiserver.All[*v1beta1.AdvDeployment](c.Store, parts) {
		if p.Labels[v1beta1.LabelAppSetUID] == "" && p.DeletionTimestamp == nil {
			_, _ = c.Remove(parts, apiserver.Key(p), apiserver.DeleteNow(), w.as("user"))
		}
	}
}

// atRest checks where a run has ended: L2.
func (w *world) atRest() error {
	live := map[string]*v1beta1.AppSet{}
	for _, a := range apiserver.All[*v1beta1.AppSet](w.hub.Store, appSets) {
		if a.DeletionTimestamp != nil {
			return fmt.Errorf("L2: at rest, and AppSet %s is being deleted and never goes", a.Name)
		}
		live[string(a.UID)] = a
		if err := w.settled(a); err != nil {
			return fmt.Errorf("L2: at rest, and AppSet %s is not as it should be: %w", a.Name, err)
		}
	}
	for _, name := range w.names {
		for _, p := range apiserver.All[*v1beta1.AdvDeployment](w.members[name].Store, parts) {
			owner := p.Labels[v1beta1.LabelAppSetUID]
			if live[owner] == nil && owner != "" && !w.lost && !w.strange(name) {
				return fmt.Errorf("L2: at rest, and cluster %s has a part of AppSet %s, which is gone", name, owner)
			}
			if a := live[owner]; a != nil && !lists(a, name) {
				return fmt.Errorf("L2: at rest, and cluster %s has a part of AppSet %s, and is not in its topology", name, a.Name)
			}
		}
	}
	return nil
}

func lists(a *v1beta1.AppSet, cluster string) bool {
	return slices.ContainsFunc(a.Spec.ClusterTopology.Clusters, func(c v1beta1.TargetCluster) bool { return c.Name == cluster })
}

// settled says what is wrong about the parts and the status of an AppSet.
func (w *world) settled(a *v1beta1.AppSet) error {
	desired, main := int32(0), a.Spec.PodSpec.Template.Spec.Containers[0].Image
	for _, c := range a.Spec.ClusterTopology.Clusters {
		p, ok := apiserver.Find[*v1beta1.AdvDeployment](w.members[c.Name].Store, parts, apiserver.Key(a))
		if !ok || p.Labels[v1beta1.LabelAppSetUID] != string(a.UID) {
			return fmt.Errorf("cluster %s has no part of it", c.Name)
		}
		if len(p.Spec.Topology.PodSets) != len(c.PodSets) {
			return fmt.Errorf("cluster %s has %d podSets, not %d", c.Name, len(p.Spec.Topology.PodSets), len(c.PodSets))
		}
		if err := w.chartSettled(a, w.members[c.Name], p); err != nil {
			return err
		}
		if ran := w.runs[p.UID]; ran != nil && len(ran.podSets) > len(c.PodSets) {
			return fmt.Errorf("cluster %s runs podSets that are not asked for any more", c.Name)
		}
		for i, s := range c.PodSets {
			has := &p.Spec.Topology.PodSets[i]
			want := int32(s.Replicas.IntValue())
			desired += want
			switch ran := w.runs[p.UID]; {
			case has.Name != s.Name || int32(has.Replicas.IntValue()) != want:
				return fmt.Errorf("cluster %s: podSet %s is to have %d instances, and the part says %s of %s", c.Name, s.Name, want, has.Name, has.Replicas.String())
			case s.Ordinals != nil && ptr.Deref(has.Ordinals, v1beta1.Ordinals{}) != *s.Ordinals: // none begin at 0, too
				return fmt.Errorf("cluster %s: the ids of podSet %s begin at %d, and the part says %v", c.Name, s.Name, s.Ordinals.Start, has.Ordinals)
			case ran == nil || ran.podSets[s.Name] == nil || !ran.podSets[s.Name].isDone() || ran.podSets[s.Name].follows.replicas != want:
				return fmt.Errorf("cluster %s: podSet %s does not have %d instances", c.Name, s.Name, want)
			case ran.podSets[s.Name].follows.image != main && !w.plan.Charted:
				return fmt.Errorf("cluster %s: podSet %s has the image %s, and %s is asked for", c.Name, s.Name, ran.podSets[s.Name].follows.image, main)
			}
		}
	}
	s := &a.Status
	switch sums := &s.AggrStatus; {
	case s.ObservedGeneration != a.Generation:
		return fmt.Errorf("observedGeneration is %d of %d", s.ObservedGeneration, a.Generation)
	case sums.Desired != desired || sums.Available != desired:
		return fmt.Errorf("%d of %d instances are available, and there are %d", sums.Available, sums.Desired, desired)
	case !meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionReady):
		return fmt.Errorf("it is not Ready: %+v", s.Conditions)
	}
	return nil
}
