package describe

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestSeverities: what an AppSet needs a human for, by its conditions and clusters.
func TestSeverities(t *testing.T) {
	condition := func(kind, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "because"}
	}
	for _, c := range []struct {
		name       string
		conditions []metav1.Condition
		paused     bool
		cluster    v1beta1.ClusterState
		state      apiv1.State
		severity   apiv1.Severity
		command    string
	}{
		{"well", []metav1.Condition{condition(v1beta1.ConditionReady, v1beta1.ReasonSynced)}, false, v1beta1.ClusterReady, apiv1.StateReady, "", ""},
		{"halted", []metav1.Condition{condition(v1beta1.ConditionStalled, v1beta1.ReasonHalted)}, false, v1beta1.ClusterReady, apiv1.StateStalled, apiv1.SeverityHalted, "kubectl tapp fleet explain shop -n ns"},
		{"rolled back", []metav1.Condition{condition(v1beta1.ConditionStalled, v1beta1.ReasonRolledBack)}, false, v1beta1.ClusterReady, apiv1.StateStalled, apiv1.SeverityHalted, "kubectl tapp fleet explain shop -n ns"},
		{"refused", []metav1.Condition{condition(v1beta1.ConditionStalled, v1beta1.ReasonRefused)}, false, v1beta1.ClusterReady, apiv1.StateStalled, apiv1.SeverityStalled, "kubectl tapp fleet explain shop -n ns"},
		{"a lost node", []metav1.Condition{condition(v1beta1.ConditionStalled, v1beta1.ReasonNodeLost)}, false, v1beta1.ClusterReady, apiv1.StateStalled, apiv1.SeverityLost, "kubectl tapp fleet explain shop -n ns"},
		{"a gate", []metav1.Condition{condition(v1beta1.ConditionAwaitingConfirmation, "Stage")}, false, v1beta1.ClusterReady, apiv1.StateWaiting, apiv1.SeverityWaiting, "kubectl tapp fleet confirm shop -n ns"},
		{"paused", nil, true, v1beta1.ClusterReady, apiv1.StatePaused, apiv1.SeverityPaused, "kubectl tapp fleet resume shop -n ns"},
		{"silent", nil, false, v1beta1.ClusterOffline, apiv1.StateUnknown, apiv1.SeveritySilent, "kubectl tapp fleet clusters"},
	} {
		stored := &v1beta1.AppSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop"}}
		stored.Spec.UpdateStrategy.Paused = c.paused
		stored.Status.Conditions = c.conditions
		stored.Status.AggrStatus.Clusters = []v1beta1.ClusterStatus{{Name: "gz", State: c.cluster}}
		got := AppSet(stored)
		if got.State != c.state {
			t.Errorf("%s: the state is %s, want %s", c.name, got.State, c.state)
		}
		if err := needs(&got.Summary, c.severity, c.command); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// needs judges whether it needs a human for one thing of this severity, with this command; of
// none if that is empty.
func needs(s *apiv1.Summary, severity apiv1.Severity, command string) error {
	switch a := s.Attention; {
	case severity == "" && len(a) == 0:
		return nil
	case severity != "" && len(a) == 1 && a[0].Severity == severity && a[0].Command == command && a[0].Message != "":
		return nil
	case severity == "":
		return fmt.Errorf("%+v, want nothing", a)
	default:
		return fmt.Errorf("%+v, want %s and %s", a, severity, command)
	}
}
