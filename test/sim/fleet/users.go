package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// deed is what users ever did to an AppSet that takes parts away, and where.
type deed struct {
	deleted bool
	// left are the clusters that the topology once lacked.
	left map[string]bool
}

// draft is an AppSet as a user creates it, in some of the members.
func (w *world) draft(key string) *v1beta1.AppSet {
	ns, name, _ := strings.Cut(key, "/")
	a := &v1beta1.AppSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	a.Spec.PodSpec.DeployType = "InPlaceSet"
	a.Spec.PodSpec.Template = &corev1.PodTemplateSpec{}
	a.Spec.PodSpec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image(0)}}
	for i, member := range w.names {
		switch {
		case w.plan.Breaking:
			a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters, target(member, 2))
		case w.plan.Grouped:
			t := target(member, 1+w.rng.IntN(2))
			if w.rng.IntN(4) > 0 {
				t.PodSets = append(t.PodSets, podSet(member, "b", 1+w.rng.IntN(3)))
			}
			a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters, t)
		case w.plan.Gated, w.plan.Charted:
			a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters, target(member, 1+w.rng.IntN(2)))
		case w.plan.Tight:
			t := target(member, 1+w.rng.IntN(3))
			if w.rng.IntN(2) == 0 {
				t.PodSets = append(t.PodSets, podSet(member, "b", 1+w.rng.IntN(2)))
			}
			a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters, t)
		case i == 0 || w.rng.IntN(3) > 0:
			a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters, w.target(member, w.rng.IntN(4)))
		}
	}
	w.inGroups(a)
	w.strategy(a)
	if w.plan.Charted {
		charted(a, 0)
	}
	if w.plan.Foretold { // what is slow has not failed
		a.Spec.ProgressDeadlineSeconds = new(int32(3600))
	}
	return a
}

func image(n int) string { return fmt.Sprintf("demo:v%d", n) }

// target of a cluster: its podSets have the cluster's name in theirs, so that a part in
// the wrong cluster is known by itself.
func target(cluster string, n int) v1beta1.TargetCluster {
	return v1beta1.TargetCluster{Name: cluster, PodSets: []v1beta1.PodSet{podSet(cluster, "a", n)}}
}

// target of a cluster that may share a podSet with the others.
func (w *world) target(cluster string, n int) v1beta1.TargetCluster {
	t := target(cluster, n)
	if w.plan.Shared {
		t.PodSets = append(t.PodSets, w.second(cluster, 1+n))
	}
	return t
}

// mostIDs of a cluster in a podSet that the clusters share.
const mostIDs = 10

// second podSet of a cluster: one of its own, or one of the same name in all clusters, each
// of which has a range of its ids.
func (w *world) second(cluster string, n int) v1beta1.PodSet {
	if !w.plan.Shared {
		return podSet(cluster, "b", n)
	}
	s := podSet(cluster, "", n)
	s.Name, s.Ordinals = shared, &v1beta1.Ordinals{Start: int32(mostIDs * slices.Index(w.names, cluster))}
	return s
}

func podSet(cluster, name string, n int) v1beta1.PodSet {
	s := v1beta1.PodSet{}
	s.Name, s.Version, s.Replicas = "web-"+cluster+"-"+name, "v1", new(intstr.FromInt32(int32(n)))
	return s
}

// clusterOf a part, by its podSets; empty: it has none.
func clusterOf(p *v1beta1.AdvDeployment) string {
	for i := range p.Spec.Topology.PodSets {
		if words := strings.Split(p.Spec.Topology.PodSets[i].Name, "-"); len(words) == 3 {
			return words[1]
		}
	}
	return ""
}

// titleOf a part is the name that the topology has for its cluster: where kubeconfigs were
// swapped before they were first used, it is not that of the member.
func titleOf(c *cluster, p *v1beta1.AdvDeployment) string { return cmp.Or(clusterOf(p), c.name) }

// partOf an AppSet in the cluster that the topology has by a name; nil: it has none.
func (w *world) partOf(a object, title string) (*cluster, *v1beta1.AdvDeployment) {
	for _, name := range w.names {
		c := w.members[name]
		if p, ok := apiserver.Find[*v1beta1.AdvDeployment](c.Store, parts, apiserver.Key(a)); ok && titleOf(c, p) == title {
			return c, p
		}
	}
	return nil, nil
}

// edit carries out an edit.
func (w *world) edit(e Edit) {
	a, exists := apiserver.Find[*v1beta1.AppSet](w.hub.Store, appSets, e.App)
	member := w.members[w.names[e.A%len(w.names)]]
	switch e.Kind {
	case "create":
		if !exists {
			made := w.draft(e.App)
			w.foresee(nil, made)
			_, _ = w.hub.Create(appSets, made, w.as("user"))
		}
	case "delete":
		policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}[e.B%2]
		_, _ = w.hub.Remove(appSets, e.App, metav1.DeleteOptions{PropagationPolicy: &policy}, w.as("user"))
	case "confirm", "confirm wrongly", "confirm again":
		if exists {
			w.confirm(a, e.Kind)
		}
	case "edit part", "delete part":
		w.meddle(member, e)
	case "maintain":
		w.reregister(member.name, func(s *corev1.Secret) { s.Data[v1beta1.KeyStatus] = []byte("Maintaining") })
	case "serve":
		w.reregister(member.name, func(s *corev1.Secret) { delete(s.Data, v1beta1.KeyStatus) })
	case "unregister":
		_, _ = w.hub.Remove(apiserver.Secrets, apiserver.KeyOf(registry, member.name), metav1.DeleteOptions{}, w.as("operator"))
	case "register":
		w.register(member)
	default:
		if exists {
			w.rewrite(a, e, member.name)
		}
	}
}

// rewrite makes an edit of an AppSet.
func (w *world) rewrite(a *v1beta1.AppSet, e Edit, member string) {
	after := a.DeepCopy()
	for kind := range strings.SplitSeq(e.Kind, ", ") {
		w.change(after, Edit{e.Step, e.App, kind, e.A, e.B}, member)
	}
	w.foresee(a, after)
	_, _ = w.hub.Update(appSets, e.App, "", w.as("user"), func(o object) error {
		o.(*v1beta1.AppSet).Spec = after.Spec
		o.SetAnnotations(after.Annotations)
		return nil
	})
}

// change one thing about an AppSet.
func (w *world) change(a *v1beta1.AppSet, e Edit, member string) {
	topology, pod := &a.Spec.ClusterTopology, a.Spec.PodSpec.Template
	i := slices.IndexFunc(topology.Clusters, func(c v1beta1.TargetCluster) bool { return c.Name == member })
	switch {
	case e.Kind == "chart":
		charted(a, e.B%3)
	case e.Kind == "env":
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: strconv.Itoa(e.B)}}
	case e.Kind == "labels":
		pod.Labels = map[string]string{"tier": strconv.Itoa(e.B)}
	case e.Kind == "image":
		pod.Spec.Containers[0].Image = image(e.B)
	case e.Kind == "bad image":
		pod.Spec.Containers[0].Image = image(e.B) + "-bad"
	case e.Kind == "undo":
		if old := w.promised(a).images; len(old) > 1 {
			pod.Spec.Containers[0].Image = old[len(old)-2]
		}
	case e.Kind == "resume":
		a.Spec.UpdateStrategy.Paused = false
	case e.Kind == "retry":
		annotate(a, v1beta1.AnnotationRetry, idOf(a)+"/"+strconv.Itoa(w.steps))
	case e.Kind == "stages":
		w.strategy(a)
	case e.Kind == "budget" && a.Spec.UpdateStrategy.MaxUnavailable != nil:
		a.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(int32(1 + e.B%3)))
	case e.Kind == "pause":
		a.Spec.UpdateStrategy.Paused = e.B%2 == 0
	case e.Kind == "orphan":
		a.Spec.DeletionPolicy = []v1beta1.DeletionPolicy{v1beta1.DeletionOrphan, v1beta1.DeletionDelete}[e.B%2]
	case e.Kind == "abandon":
		annotate(a, v1beta1.AnnotationAbandonClusters, member)
	case e.Kind == "leave now":
		annotate(a, v1beta1.AnnotationLeave, v1beta1.LeaveNow)
	case e.Kind == "add cluster" && i < 0:
		topology.Clusters = append(topology.Clusters, w.target(member, e.B%4))
	case e.Kind == "move ids":
		moveIDs(ranges(a), e.B)
	case e.Kind == "scale all":
		for i := range topology.Clusters {
			s := &topology.Clusters[i].PodSets[0]
			s.Replicas = new(intstr.FromInt32((s.Replicas.IntVal + 1 + int32(e.B%3)) % 5))
		}
	case i < 0:
	case e.Kind == "drop cluster" && len(topology.Clusters) > 1:
		topology.Clusters = slices.Delete(topology.Clusters, i, i+1)
		forget(&a.Spec.UpdateStrategy, member)
	case e.Kind == "scale":
		podSets := topology.Clusters[i].PodSets
		at := 0
		switch {
		case w.plan.Shared:
			at = len(podSets) - 1
		case w.plan.Grouped:
			at = e.B % len(podSets)
		}
		podSets[at].Replicas = new(intstr.FromInt32(int32(e.B % 5)))
	case e.Kind == "add podSet" && len(topology.Clusters[i].PodSets) == 1:
		topology.Clusters[i].PodSets = append(topology.Clusters[i].PodSets, w.second(member, e.B%3))
	case e.Kind == "drop podSet":
		topology.Clusters[i].PodSets = topology.Clusters[i].PodSets[:1]
	}
	apart(ranges(a))
	w.inGroups(a)
}

// ranges of ids that the clusters of an AppSet share.
func ranges(a *v1beta1.AppSet) (out []*v1beta1.Ordinals) {
	for i := range a.Spec.ClusterTopology.Clusters {
		podSets := a.Spec.ClusterTopology.Clusters[i].PodSets
		for k := range podSets {
			if podSets[k].Name == shared {
				out = append(out, podSets[k].Ordinals)
			}
		}
	}
	return out
}

// moveIDs gives each cluster the range of the one before it, up to half a range further on.
func moveIDs(all []*v1beta1.Ordinals, n int) {
	if len(all) == 0 {
		return
	}
	last := all[len(all)-1].Start
	for i := len(all) - 1; i >= 0; i-- {
		from := last
		if i > 0 {
			from = all[i-1].Start
		}
		all[i].Start = from - from%mostIDs + int32((n+i)%(mostIDs/2))
	}
}

// apart has who joins take a range that nobody has.
func apart(all []*v1beta1.Ordinals) {
	taken := map[int32]bool{}
	for _, one := range all {
		for taken[one.Start/mostIDs] {
			one.Start = (one.Start/mostIDs + 1) % 8 * mostIDs
		}
		taken[one.Start/mostIDs] = true
	}
}

func annotate(o object, key, value string) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	o.SetAnnotations(all)
}

// meddle with a part in its member.
func (w *world) meddle(c *cluster, e Edit) {
	p, ok := apiserver.Find[*v1beta1.AdvDeployment](c.Store, parts, e.App)
	if a, exists := apiserver.Find[*v1beta1.AppSet](w.hub.Store, appSets, e.App); exists {
		w.promised(a).meddled = true
	}
	switch {
	case !ok:
	case e.Kind == "delete part":
		_, _ = c.Remove(parts, e.App, metav1.DeleteOptions{}, w.as("somebody"))
	default:
		_, _ = c.Update(parts, apiserver.Key(p), "", w.as("somebody"), func(o object) error {
			p := o.(*v1beta1.AdvDeployment)
			switch e.B % 3 {
			case 0:
				for i := range p.Spec.Topology.PodSets {
					p.Spec.Topology.PodSets[i].Replicas = new(intstr.FromInt32(7))
				}
			case 1:
				p.Spec.Labels = map[string]string{"somebody": strconv.Itoa(e.B)}
			case 2:
				delete(p.Labels, v1beta1.LabelAppSetUID)
			}
			return nil
		})
	}
}

// note what a user's write to an AppSet takes away.
func (w *world) note(a *v1beta1.AppSet) {
	d := w.deeds[a.UID]
	if d == nil {
		d = &deed{left: map[string]bool{}}
		w.deeds[a.UID] = d
	}
	d.deleted = d.deleted || a.DeletionTimestamp != nil
	w.promised(a).note(a)
	for _, name := range memberNames(5) {
		if !slices.ContainsFunc(a.Spec.ClusterTopology.Clusters, func(c v1beta1.TargetCluster) bool { return c.Name == name }) {
			d.left[name] = true
		}
	}
}

// beliefTime is how old the AppSet may be that a process decides about, beside what its
// watch lacks: it may wait for other clusters in between.
const beliefTime = time.Minute

// tookAway says whether a user's deed takes a part away, by what the process can have known
// when it asked for that. A tombstone tells of such a deed, and not of a later one by which
// the cluster is wanted again.
func (w *world) tookAway(r *request, part *v1beta1.AdvDeployment, cluster string) bool {
	uid := types.UID(part.Labels[v1beta1.LabelAppSetUID])
	d := w.deeds[uid]
	if heir, ok := apiserver.Find[*v1beta1.AppSet](w.hub.Store, appSets, apiserver.Key(part)); ok && w.lost && heir.UID != uid && !lists(heir, cluster) {
		return true // the hub lost the AppSet, and a user made it again without the cluster
	}
	if d == nil || d.deleted || !d.left[cluster] || w.lost {
		return d != nil && (d.deleted || d.left[cluster])
	}
	var last *v1beta1.AppSet
	for _, change := range w.hub.Tables[appSets].History {
		a, ok := change.After.(*v1beta1.AppSet)
		if !ok || a.UID != uid {
			continue
		}
		if change.Version <= r.told && r.issued.Sub(change.At) > beliefTime {
			last = a // which it may still know
			continue
		}
		if !lists(a, cluster) {
			return true
		}
	}
	return last == nil || !lists(last, cluster)
}
