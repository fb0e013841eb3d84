package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestTAppSeverities: what a TApp needs a human for, by its conditions.
func TestTAppSeverities(t *testing.T) {
	condition := func(kind, reason string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because"}
	}
	ready := condition(tappv1.ConditionReady, "Available", metav1.ConditionTrue)
	for _, c := range []struct {
		name       string
		conditions []metav1.Condition
		paused     bool
		state      State
		severity   Severity
		command    string
	}{
		{"well", []metav1.Condition{ready}, false, StateReady, "", ""},
		{"on its way", []metav1.Condition{condition(tappv1.ConditionProgressing, "Updating", metav1.ConditionTrue)}, false, StateProgressing, "", ""},
		{"stalled", []metav1.Condition{condition(tappv1.ConditionStalled, "DeadlineExceeded", metav1.ConditionTrue)}, false, StateStalled, SeverityStalled, "kubectl tapp status web -n ns"},
		{"failed", []metav1.Condition{condition(tappv1.ConditionReady, "InstancesFailed", metav1.ConditionFalse)}, false, StateFailed, SeverityStalled, "kubectl tapp status web -n ns"},
		{"paused", nil, true, StatePaused, SeverityPaused, "kubectl tapp resume web -n ns"},
		{"a lost node", []metav1.Condition{ready, condition(tappv1.ConditionForceDeleted, "NodeLost", metav1.ConditionTrue)}, false, StateReady, SeverityLost, "kubectl get nodes"},
		{"a node that was lost", []metav1.Condition{ready, condition(tappv1.ConditionForceDeleted, "NodeLost", metav1.ConditionFalse)}, false, StateReady, "", ""},
	} {
		stored := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
		stored.Spec.Replicas, stored.Spec.Paused = new(int32(3)), c.paused
		stored.Status.Conditions = c.conditions
		got := summarize(stored)
		if got.State != c.state {
			t.Errorf("%s: the state is %s, want %s", c.name, got.State, c.state)
		}
		if err := got.needs(c.severity, c.command); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
