package appset

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// loses a node of a cluster: an instance of its canary waits for that, and so the part says.
func (w *world) loses(cluster, reason string) {
	w.workIn(cluster)
	part := w.clusters[cluster].Part
	part.Status.AggrStatus.PodSets[0].Available = 0
	part.Status.AggrStatus.Available--
	meta.SetStatusCondition(&part.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason,
		Message: `TApp "web-gz01-canary": node a is lost (instance 0)`, ObservedGeneration: part.Generation})
}

// TestNodeLost: a lost node is no fault of the content. The AppSet says what is lost, and its
// rollout goes on when the node is back; it halts when nothing moved for
// progressDeadlineSeconds, and at once for what is a fault.
func TestNodeLost(t *testing.T) {
	const lost = `cluster one: TApp "web-gz01-canary": node a is lost (instance 0)`
	begun := func() *world {
		w := newWorld(t, strings.Replace(colours, "needWaitingForConfirm: true", "needWaitingForConfirm: false", 1), "one", "two").install()
		w.edit(image("nginx:2"))
		return w.settle().expect("Apply one", "Apply two")
	}
	w := begun()
	w.loses("one", v1beta1.ReasonNodeLost)
	w.workIn("two")
	w.settle().expect().says(v1beta1.PhaseUpdating, "6/5/0 1/2", "NodeLost: "+lost)
	if ready := w.condition(v1beta1.ConditionReady); ready.Status != metav1.ConditionFalse || ready.Reason != v1beta1.ReasonNodeLost {
		t.Errorf("%+v", ready)
	}
	w.now = w.now.Add(10*time.Minute - time.Second)
	w.settle().expect().says(v1beta1.PhaseUpdating, "6/5/0 1/2", "NodeLost: "+lost)
	one := w.clusters["one"]
	one.Part = one.Part.DeepCopy()
	one.Part.Status.Conditions = nil
	w.workIn("one") // the node is back
	for range 3 {
		w.settle().work()
	}
	w.settle().says(v1beta1.PhaseRunning, "6/6/0 2", "")

	w = begun()
	w.loses("one", v1beta1.ReasonNodeLost)
	w.settle().expect()
	w.now = w.now.Add(10 * time.Minute)
	w.settle()
	if c := w.condition(v1beta1.ConditionStalled); w.app.Status.AggrStatus.Status != v1beta1.PhaseHalted || c.Reason != v1beta1.ReasonHalted || !strings.HasSuffix(c.Message, "; "+lost) {
		t.Errorf("nothing moved for the deadline: %s, %s: %s", w.app.Status.AggrStatus.Status, c.Reason, c.Message)
	}

	w = begun()
	w.loses("one", "InvalidSpec")
	w.settle()
	if got := w.app.Status.AggrStatus.Status; got != v1beta1.PhaseHalted {
		t.Errorf("what is a fault halts at once: %s", got)
	}
}
