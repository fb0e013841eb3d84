package appset

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// ail has the worker of a cluster tell that it cannot go on, and with which podSets: of each its
// reason, and how many instances are available.
func (w *world) ail(cluster, reason string, podSets ...v1beta1.PodSetStatus) {
	part := w.clusters[cluster].Part
	part.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason, Message: "it is bad"}}
	for i, p := range podSets {
		s := &part.Status.AggrStatus.PodSets[i]
		s.Reason, s.Message = p.Reason, p.Message
		s.Available -= p.UnAvailable
	}
}

// TestMended: a part that is stalled by what the rollout replaces in its turn is on its way. By
// anything else it needs help.
func TestMended(t *testing.T) {
	ok, failed, short, held := v1beta1.PodSetStatus{}, v1beta1.PodSetStatus{Reason: "HookFailed", Message: "no"}, v1beta1.PodSetStatus{UnAvailable: 1}, v1beta1.PodSetStatus{Reason: v1beta1.ReasonHeld}
	for name, c := range map[string]struct {
		reason       string
		canary, blue v1beta1.PodSetStatus
		change       func(*world)
		stalled      bool
	}{
		"what it had failed":                        {reason: "HookFailed", canary: ok, blue: failed},
		"and the gate waits":                        {reason: "HookFailed", canary: ok, blue: failed, change: func(w *world) { w.workIn("one") }},
		"what it has failed":                        {reason: "HookFailed", canary: failed, blue: ok, stalled: true},
		"both failed":                               {reason: "HookFailed", canary: failed, blue: failed, stalled: true},
		"what it had failed, and its neighbour":     {reason: "HookFailed", canary: short, blue: failed},
		"the part for another reason":               {reason: "ErrResourceExists", canary: ok, blue: failed, stalled: true},
		"a child of what it had":                    {reason: "ProgressDeadlineExceeded", canary: ok, blue: short},
		"a child of what it had, which is held":     {reason: "ProgressDeadlineExceeded", canary: held, blue: short},
		"a child of either":                         {reason: "ProgressDeadlineExceeded", canary: short, blue: short, stalled: true},
		"a child, and all are available":            {reason: "InvalidSpec", canary: ok, blue: ok, stalled: true},
		"the part, and what it had lacks instances": {reason: v1beta1.ReasonRefused, canary: ok, blue: short, stalled: true},
		"a node": {reason: v1beta1.ReasonNodeLost, canary: ok, blue: short, stalled: true},
		"what it had failed, and nothing is on its way": {reason: "HookFailed", canary: ok, blue: failed, stalled: true, change: func(w *world) {
			w.edit(func(a *v1beta1.AppSet) { a.Spec.UpdateStrategy.Paused = true })
			w.settle().workIn("two")
			w.ail("two", "HookFailed", ok, failed)
		}},
		"what it had failed before it was written to": {reason: "HookFailed", canary: failed, blue: failed, change: func(w *world) {
			w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters[1].PodSets[0].Version = "v7" })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, colours, "one", "two")
			w.edit(func(a *v1beta1.AppSet) { a.Spec.UpdateStrategy.MaxFailures = new(intstr.FromInt32(1)) }) // else it halts
			w.install()
			w.edit(image("nginx:2"))
			w.settle().workIn("two")
			w.ail("two", c.reason, c.canary, c.blue)
			if c.change != nil {
				c.change(w)
			}
			w.settle()
			stalled, goesOn := w.condition(v1beta1.ConditionStalled), w.condition(v1beta1.ConditionReconciling)
			if (stalled.Status == metav1.ConditionTrue) != c.stalled || (goesOn.Status == metav1.ConditionTrue) == c.stalled {
				t.Errorf("Stalled %+v, Reconciling %+v, rollout %+v", stalled, goesOn, w.app.Status.Rollout)
			}
			if said := "cluster two: it is bad; another content is on its way there"; c.change == nil && !c.stalled && !strings.Contains(goesOn.Message, said) {
				t.Errorf("it says %q", goesOn.Message)
			}
		})
	}
}
