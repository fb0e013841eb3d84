package describe

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "tkestack.io/tapp/api/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// judgeTApp says in one word how the TApp is, and what needs a human.
func judgeTApp(s *apiv1.TApp, t *tappv1.TApp) {
	stalled := meta.FindStatusCondition(t.Status.Conditions, tappv1.ConditionStalled)
	ready := meta.FindStatusCondition(t.Status.Conditions, tappv1.ConditionReady)
	progressing := meta.FindStatusCondition(t.Status.Conditions, tappv1.ConditionProgressing)
	left := s.Updated < s.Desired
	s.State = apiv1.StateProgressing
	var from *metav1.Condition
	switch {
	case t.DeletionTimestamp != nil:
		s.State, s.Since = apiv1.StateDeleting, t.DeletionTimestamp
	case t.Status.ObservedGeneration < t.Generation:
		s.State = apiv1.StateUnobserved
	case isTrue(stalled):
		s.State, from = apiv1.StateStalled, stalled
	case isTrue(ready):
		s.State, from = apiv1.StateReady, ready
	case s.Paused && left:
		s.State, from = apiv1.StatePaused, ready
	case ready != nil && ready.Reason == "InstancesFailed":
		s.State, from = apiv1.StateFailed, ready
	case isTrue(progressing):
		from = progressing
	default:
		from = ready
	}
	if from != nil {
		s.Reason, s.Message, s.Since = from.Reason, from.Message, &from.LastTransitionTime
	}
	lost := isTrue(stalled) && stalled.Reason == plan.ReasonNodeLost
	switch {
	case s.State == apiv1.StateStalled && !lost, s.State == apiv1.StateFailed:
		s.Attention = append(s.Attention, apiv1.Attention{Severity: apiv1.SeverityStalled, Reason: s.Reason, Message: s.Message, Since: s.Since, Command: Command(&s.Summary, "status", "")})
	case s.State == apiv1.StatePaused:
		s.Attention = append(s.Attention, apiv1.Attention{Severity: apiv1.SeverityPaused, Reason: "Paused", Message: "spec.paused holds updates that are left to do", Since: s.Since, Command: Command(&s.Summary, "resume", "")})
	}
	if lost { // in every state: a TApp that is being deleted waits for its nodes, too
		addLost(s, stalled)
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, tappv1.ConditionForceDeleted); isTrue(c) {
		addLost(s, c)
	}
}

// addLost adds the lost nodes of which a condition tells to what needs attention.
func addLost(s *apiv1.TApp, c *metav1.Condition) {
	s.Attention = append(s.Attention, apiv1.Attention{Severity: apiv1.SeverityLost, Reason: c.Reason, Message: c.Message, Since: &c.LastTransitionTime, Command: "kubectl get nodes"})
}
