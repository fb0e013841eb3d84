package appset

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

const ranged = `
metadata: {name: web, namespace: shop, uid: web-1, generation: 1}
spec:
  podSpec: {deployType: tapp, template: {spec: {containers: [{name: web, image: "nginx:1"}]}}}
  clusterTopology:
    clusters:
    - {name: one, podSets: [{name: web, replicas: 5}]}
    - {name: two, podSets: [{name: web, replicas: 5, ordinals: {start: 5}}]}
`

// rangeOf the podSet as the part of a cluster has it.
func (w *world) rangeOf(cluster string) string {
	return idsOf(&w.clusters[cluster].Part.Spec.Topology.PodSets[0]).String()
}

func (w *world) ranges(one, two string) *world {
	w.Helper()
	if a, b := w.rangeOf("one"), w.rangeOf("two"); a != one || b != two {
		w.Fatalf("ids %s and %s, want %s and %s", a, b, one, two)
	}
	return w
}

// give cluster one so many ids, and two those from there to 9.
func give(n int32) func(*v1beta1.AppSet) {
	return func(a *v1beta1.AppSet) {
		clusters := a.Spec.ClusterTopology.Clusters
		clusters[0].PodSets[0].Replicas = new(intstr.FromInt32(n))
		clusters[1].PodSets[0].Replicas, clusters[1].PodSets[0].Ordinals = new(intstr.FromInt32(10-n)), &v1beta1.Ordinals{Start: n}
	}
}

// TestHandOver: no id is in two clusters.
func TestHandOver(t *testing.T) {
	const why = "it is to have the ids 3-9, and has 5-9 until cluster one is certain to have let go of the others"
	w := newWorld(t, ranged, "one", "two").install().ranges("0-4", "5-9")
	w.edit(give(3))
	w.settle().expect("Apply one").ranges("0-2", "5-9").says(v1beta1.PhaseScaling, "10/8/0 1", "")
	w.settle().expect() // not before it is seen
	if p := w.app.Status.AggrStatus.Clusters[1].PodSets[0]; p.Desired != 7 || p.UnAvailable != 2 || p.Message != why {
		t.Errorf("%d desired, %d unavailable: %s", p.Desired, p.UnAvailable, p.Message)
	}
	if ready := w.condition(v1beta1.ConditionReady); ready.Status != "False" {
		t.Errorf("%+v", ready)
	}
	w.workIn("one")
	part := w.clusters["one"].Part
	part.Status.AggrStatus.PodSets[0].Current = new(int32(4)) // one is left
	w.settle().expect().ranges("0-2", "5-9")
	w.workIn("one")
	w.settle().expect("Apply two").ranges("0-2", "3-9")
	w.work().settle().expect().says(v1beta1.PhaseRunning, "10/10/0 1", "")

	// And back: now it is two that has to let go.
	w.edit(give(6))
	w.settle().expect("Apply two").ranges("0-2", "6-9")
	w.work().settle().expect("Apply one").ranges("0-5", "6-9")
	w.work().settle().expect()

	// A silent cluster keeps what it has; what nobody has comes at once.
	w.silence("one", v1beta1.ClusterOffline)
	w.edit(give(2))
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.ClusterTopology.Clusters[1].PodSets[0].Replicas = new(intstr.FromInt32(10))
	})
	w.settle().expect("Apply two").ranges("0-5", "6-11")
	w.workIn("two")
	w.settle().expect()
	w.hear("one")
	w.settle().expect("Apply one").work().settle().expect("Apply two").ranges("0-1", "2-11")
	w.work().settle().expect()

	// A cluster that leaves goes first.
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.ClusterTopology.Clusters = a.Spec.ClusterTopology.Clusters[1:]
		a.Spec.ClusterTopology.Clusters[0].PodSets[0].Replicas, a.Spec.ClusterTopology.Clusters[0].PodSets[0].Ordinals = new(intstr.FromInt32(12)), nil
		a.Spec.ClusterTopology.Clusters[0].PodSets[0].Ordinals = &v1beta1.Ordinals{}
	})
	w.settle()
	if got := w.rangeOf("two"); got != "2-11" {
		t.Errorf("two has %s", got)
	}
	w.work().settle().work().settle().work().settle()
	if got := w.rangeOf("two"); got != "0-11" || w.clusters["one"].Part != nil {
		t.Errorf("two has %s in the end", got)
	}
}

// TestSwap: two clusters that exchange their ids both let go first.
func TestSwap(t *testing.T) {
	w := newWorld(t, ranged, "one", "two").install()
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.ClusterTopology.Clusters[0].PodSets[0].Ordinals = &v1beta1.Ordinals{Start: 5}
		a.Spec.ClusterTopology.Clusters[1].PodSets[0].Ordinals = nil
	})
	w.settle().expect("Apply one", "Apply two").ranges("none", "none")
	w.work().settle().expect("Apply one", "Apply two").ranges("5-9", "0-4")
	w.work().settle().expect().says(v1beta1.PhaseRunning, "10/10/0 1", "")
}
