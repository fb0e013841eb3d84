package describe

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "tkestack.io/tapp/api/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
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
		state      apiv1.State
		severity   apiv1.Severity
		command    string
	}{
		{"well", []metav1.Condition{ready}, false, apiv1.StateReady, "", ""},
		{"on its way", []metav1.Condition{condition(tappv1.ConditionProgressing, "Updating", metav1.ConditionTrue)}, false, apiv1.StateProgressing, "", ""},
		{"stalled", []metav1.Condition{condition(tappv1.ConditionStalled, "DeadlineExceeded", metav1.ConditionTrue)}, false, apiv1.StateStalled, apiv1.SeverityStalled, "kubectl tapp status web -n ns"},
		{"failed", []metav1.Condition{condition(tappv1.ConditionReady, "InstancesFailed", metav1.ConditionFalse)}, false, apiv1.StateFailed, apiv1.SeverityStalled, "kubectl tapp status web -n ns"},
		{"paused", nil, true, apiv1.StatePaused, apiv1.SeverityPaused, "kubectl tapp resume web -n ns"},
		{"a lost node", []metav1.Condition{ready, condition(tappv1.ConditionForceDeleted, "NodeLost", metav1.ConditionTrue)}, false, apiv1.StateReady, apiv1.SeverityLost, "kubectl get nodes"},
		{"a lost node that is waited for", []metav1.Condition{condition(tappv1.ConditionStalled, "NodeLost", metav1.ConditionTrue), condition(tappv1.ConditionProgressing, "Progressing", metav1.ConditionTrue)}, false, apiv1.StateStalled, apiv1.SeverityLost, "kubectl get nodes"},
		{"a node that was waited for", []metav1.Condition{ready, condition(tappv1.ConditionStalled, "NodeLost", metav1.ConditionFalse)}, false, apiv1.StateReady, "", ""},
		{"a node that was lost", []metav1.Condition{ready, condition(tappv1.ConditionForceDeleted, "NodeLost", metav1.ConditionFalse)}, false, apiv1.StateReady, "", ""},
	} {
		stored := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
		stored.Spec.Replicas, stored.Spec.Paused = new(int32(3)), c.paused
		stored.Status.Conditions = c.conditions
		got := TApp(stored)
		if got.State != c.state {
			t.Errorf("%s: the state is %s, want %s", c.name, got.State, c.state)
		}
		if err := needs(&got.Summary, c.severity, c.command); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestLostNodeNeedsAttention: what the planner concludes of a TApp that may not delete by force
// is among what needs a human, with the node and its instances, and so it is while the TApp is
// being deleted and the controller has not seen its last edit.
func TestLostNodeNeedsAttention(t *testing.T) {
	now := time.Now()
	stored := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web-uid", Generation: 2}}
	stored.Spec.Replicas = new(int32(2))
	stored.Spec.Template.Labels = map[string]string{"app": "web"}
	in := plan.Input{TApp: stored, Nodes: map[string]plan.NodeState{"a": {Exists: true, NotReadySince: now.Add(-time.Hour)}}, Policy: plan.Policy{NodeLostAfter: 5 * time.Minute}, Now: now}
	for _, id := range []string{"0", "1"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-" + id, Labels: map[string]string{"app": "web"}, DeletionTimestamp: &metav1.Time{Time: now.Add(-10 * time.Minute)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(stored, tappv1.GroupVersionKind())}}}
		pod.Spec.NodeName = "a"
		in.Pods = append(in.Pods, pod)
	}
	stored.Status = plan.Compute(in).Status
	for state, edit := range map[apiv1.State]func(*tappv1.TApp){
		apiv1.StateStalled:    func(*tappv1.TApp) {},
		apiv1.StateUnobserved: func(t *tappv1.TApp) { t.Generation++ },
		apiv1.StateDeleting:   func(t *tappv1.TApp) { t.DeletionTimestamp = &metav1.Time{Time: now} },
	} {
		o := stored.DeepCopy()
		edit(o)
		got := TApp(o)
		if got.State != state || len(got.Attention) != 1 || got.Attention[0].Severity != apiv1.SeverityLost || got.Attention[0].Reason != "NodeLost" ||
			!strings.Contains(got.Attention[0].Message, "node a has not been ready for 5m0s (instances 0-1)") {
			t.Errorf("%s: the state is %s: %+v", state, got.State, got.Attention)
		}
	}
	in.Nodes["a"] = plan.NodeState{Exists: true}
	if stored.Status = plan.Compute(in).Status; len(TApp(stored).Attention) != 0 {
		t.Errorf("the node is back: %+v", TApp(stored).Attention)
	}
}
