package appset

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestFleetBudget: grants are in the parts, and the record has their bounds before.
func TestFleetBudget(t *testing.T) {
	w := newWorld(t, colours, "one", "two")
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{MaxUnavailable: new(intstr.FromInt32(1)), MaxConcurrentClusters: new(intstr.FromInt32(2))}
	})
	w.install()
	w.edit(image("nginx:2"))
	for range 6 {
		w.settle().expect(w.wrote...)
		granted := int32(0)
		for _, cluster := range w.clusters {
			for _, p := range cluster.Part.Spec.Topology.PodSets {
				seen := (&site{Cluster: *cluster, ours: true}).podSet(p.Name)
				if p.MaxUnavailable != nil && (seen == nil || !seen.Observed || cluster.Part.Status.ObservedGeneration != cluster.Part.Generation) {
					granted += *p.MaxUnavailable
				}
			}
		}
		if granted > 1 {
			t.Fatalf("%d are granted", granted)
		}
		w.work()
	}
	w.settle().says(v1beta1.PhaseRunning, "6/6/0 2", "")
}

// TestLeavingBudget: a cluster that leaves in the midst of a change has what it was granted,
// and others do not get it, too.
func TestLeavingBudget(t *testing.T) {
	w := newWorld(t, colours, "one", "two")
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{MaxUnavailable: new(intstr.FromInt32(2)), MaxConcurrentClusters: new(intstr.FromInt32(2))}
	})
	w.install()
	w.edit(image("nginx:2"))
	w.settle().expect("Apply one")
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.ClusterTopology.Clusters = a.Spec.ClusterTopology.Clusters[1:]
		image("nginx:3")(a)
	})
	blue := &w.clusters["two"].Part.Status.AggrStatus.PodSets[1]
	blue.Available-- // so that it cannot leave yet
	w.settle().expect()
	w.workIn("one")
	w.settle().expect("Apply two")
	w.work().settle().work().settle().expect("Apply two", "Delete one")
}

// TestLeftOverBudget: a podSet that is dropped in the midst of a change keeps what it was
// granted until its cluster reports that nothing is left of it.
func TestLeftOverBudget(t *testing.T) {
	drop := func(a *v1beta1.AppSet) {
		t := &a.Spec.ClusterTopology.Clusters[0]
		t.PodSets = t.PodSets[:len(t.PodSets)-1]
	}
	for name, c := range map[string]struct {
		// happens in cluster one after the podSet was dropped there.
		happens func(w *world)
		wrote   []string
	}{
		"nothing":         {func(*world) {}, nil},
		"an older report": {func(w *world) { w.workIn("one"); w.clusters["one"].Part.Generation++ }, nil},
		"it is left over": {func(w *world) {
			w.workIn("one")
			w.made("one", "Service/web-svc", "TApp/web-gz01-canary", "TApp/web-gz01-blue")
		}, nil},
		"a report, and silent": {func(w *world) { w.workIn("one"); w.silence("one", v1beta1.ClusterOffline) }, nil},
		"it is gone":           {func(w *world) { w.workIn("one"); w.made("one", "Service/web-gz01-blue", "TApp/web-gz01-canary") }, []string{"Apply two"}},
		"there is no part":     {func(w *world) { w.clusters["one"].Part = nil }, []string{"Apply two", "Create one"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, colours, "one", "two")
			w.edit(func(a *v1beta1.AppSet) {
				a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{MaxUnavailable: new(intstr.FromInt32(2)), MaxConcurrentClusters: new(intstr.FromInt32(2)), UnreachableCounts: v1beta1.UnreachableAsLastSeen}
			})
			w.install()
			w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters[0].PodSets[1].Image = "nginx:2" })
			w.settle().expect("Apply one")
			w.edit(func(a *v1beta1.AppSet) {
				drop(a)
				a.Spec.ClusterTopology.Clusters[1].PodSets[1].Image = "nginx:2"
			})
			w.settle().expect("Apply one")
			c.happens(w)
			w.settle().expect(c.wrote...)
		})
	}
}

// TestLeftOverReturns: a podSet that is asked for again while something is left over of it is
// made to stop where it is, and charged until it is seen.
func TestLeftOverReturns(t *testing.T) {
	w := newWorld(t, colours, "one", "two")
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{MaxUnavailable: new(intstr.FromInt32(2)), MaxConcurrentClusters: new(intstr.FromInt32(2))}
	})
	w.install()
	w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters[0].PodSets[1].Image = "nginx:2" })
	w.settle().expect("Apply one")
	before := w.app.Spec.ClusterTopology.DeepCopy()
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.ClusterTopology.Clusters[0].PodSets = a.Spec.ClusterTopology.Clusters[0].PodSets[:1]
	})
	w.settle().expect("Apply one").workIn("one")
	w.made("one", "TApp/web-gz01-canary", "TApp/web-gz01-blue")
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.ClusterTopology = *before
		a.Spec.ClusterTopology.Clusters[1].PodSets[1].Image = "nginx:2"
	})
	w.settle().expect("Apply one")
	blue := w.clusters["one"].Part.Spec.Topology.PodSets[1]
	if blue.MaxUnavailable == nil || *blue.MaxUnavailable != 0 || blue.Ceiling == nil || *blue.Ceiling != 2 {
		t.Errorf("granted %v of %v", blue.MaxUnavailable, blue.Ceiling)
	}
	w.workIn("one")
	w.settle().expect("Apply two")
}

// TestSilentLeavingBudget: a podSet that is dropped while its cluster is silent, and which the part
// there has yet, keeps what it was granted.
func TestSilentLeavingBudget(t *testing.T) {
	w := newWorld(t, colours, "one", "two")
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{MaxUnavailable: new(intstr.FromInt32(2)), MaxConcurrentClusters: new(intstr.FromInt32(2)), UnreachableCounts: v1beta1.UnreachableAsLastSeen}
	})
	w.install()
	w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters[0].PodSets[1].Image = "nginx:2" })
	w.settle().expect("Apply one")
	w.silence("one", v1beta1.ClusterOffline)
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.ClusterTopology.Clusters[0].PodSets = a.Spec.ClusterTopology.Clusters[0].PodSets[:1]
		a.Spec.ClusterTopology.Clusters[1].PodSets[1].Image = "nginx:2"
	})
	w.settle().expect()
	w.hear("one")
	w.settle().expect("Apply one")
}
