package appset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestLife: an AppSet is installed, changed, scaled, and deleted; at rest nothing is
// written.
func TestLife(t *testing.T) {
	w := newWorld(t, web, "one", "two", "three")
	w.settle().expect("Own", "Create one", "Create two").says(v1beta1.PhaseInstalling, "6/0/0", "")
	w.work().settle().expect().says(v1beta1.PhaseRunning, "6/6/0 v1/v2", "")
	if c := w.condition(v1beta1.ConditionReady); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	stored := w.app.Status.DeepCopy()
	w.now = w.now.Add(1000000)
	if w.settle().expect(); w.app.Status.LastUpdateTime.Time != stored.LastUpdateTime.Time {
		t.Error("the status changes at rest")
	}

	w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters[1].PodSets[0].Replicas.IntVal = 5 })
	w.settle().expect("Apply two").says(v1beta1.PhaseScaling, "8/6/0 v1/v2", "")
	w.work().settle().expect().says(v1beta1.PhaseRunning, "8/8/0 v1/v2", "")

	w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters[0].PodSets[1].Version = "v3" })
	w.settle().expect("Apply one").says(v1beta1.PhaseUpdating, "8/8/0 v1/v2", "")
	w.work().settle().expect("Apply one").work().settle().expect().says(v1beta1.PhaseRunning, "8/8/0 v1/v2/v3", "")

	w.deleteAppSet()
	w.settle().expect("Delete one", "Delete two").says(v1beta1.PhaseDeleting, "8/8/0 v1/v2/v3", "")
	w.workIn("one")
	w.settle().expect()
	w.workIn("two")
	if w.settle().expect("Own"); w.app != nil {
		t.Error("it is still there")
	}
}
