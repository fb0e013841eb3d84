package unready

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestOpening: what a kubelet said before a gate opened is awaited anew, for twenty seconds
// and whatever the clocks say.
func TestOpening(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		gate, ready   corev1.ConditionStatus
		opened, since time.Duration // ago
		ungated       bool
		left          time.Duration
	}{
		"Ready is from before the opening":      {gate: "True", ready: "True", opened: 3 * time.Second, since: time.Hour, left: 17 * time.Second},
		"no kubelet is that late":               {gate: "True", ready: "True", opened: 20 * time.Second, since: time.Hour},
		"the kubelet has answered":              {gate: "True", ready: "True", opened: 3 * time.Second, since: time.Second},
		"in the second of the opening":          {gate: "True", ready: "True", opened: 3 * time.Second, since: 3 * time.Second},
		"not Ready":                             {gate: "True", ready: "False", opened: 3 * time.Second, since: time.Hour},
		"closed":                                {gate: "False", ready: "True", opened: 3 * time.Second, since: time.Hour},
		"another controller's clock runs ahead": {gate: "True", ready: "True", opened: -time.Hour, since: time.Hour, left: 20 * time.Second},
		"no gate of ours":                       {gate: "True", ready: "True", opened: 3 * time.Second, since: time.Hour, ungated: true},
	} {
		ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
		pod := &corev1.Pod{}
		if !c.ungated {
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
		}
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: tappv1.GateInPlaceUpdate, Status: c.gate, LastTransitionTime: ago(c.opened)},
			{Type: corev1.PodReady, Status: c.ready, LastTransitionTime: ago(c.since)},
		}
		got := Opening(pod, now)
		if got.Left != c.left || (got.Reason == "NotObserved") != (c.left > 0) {
			t.Errorf("%s: %+v, want %s left", name, got, c.left)
		}
	}
}
