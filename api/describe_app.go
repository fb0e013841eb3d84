package api

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

func summarizeApp(stored *appv1.App) App {
	d := stored.DeepCopy()
	appv1.Default(d)
	t := &d.Spec.DeploymentTemplate
	out := App{
		Summary: Summary{Namespace: d.Namespace, Name: d.Name, UID: string(d.UID), Created: d.CreationTimestamp, Generation: d.Generation, ObservedGeneration: d.Status.ObservedGeneration},
		Image:   t.Image, Deployment: t.Name, Service: d.Spec.ServiceTemplate.Name,
	}
	if t.Name != "" && t.Replicas != nil {
		out.Replicas = *t.Replicas
	}
	if s := d.Status.DeploymentStatus; s != nil {
		out.Ready = s.ReadyReplicas
	}
	judge(&out.Summary, d.DeletionTimestamp, d.Status.Conditions)
	return out
}

// judge says in one word how an object with kstatus' conditions is, and what needs a human.
func judge(s *Summary, deleted *metav1.Time, conditions []metav1.Condition) {
	stalled, ready := meta.FindStatusCondition(conditions, appv1.ConditionStalled), meta.FindStatusCondition(conditions, appv1.ConditionReady)
	from := ready
	s.State = StateProgressing
	switch {
	case deleted != nil:
		s.State, s.Since = StateDeleting, deleted
	case s.ObservedGeneration < s.Generation:
		s.State = StateUnobserved
		return
	case isTrue(stalled):
		s.State, from = StateStalled, stalled
	case isTrue(ready):
		s.State = StateReady
	}
	if from != nil {
		s.Reason, s.Message, s.Since = from.Reason, from.Message, &from.LastTransitionTime
	}
	if s.State == StateStalled {
		severity := SeverityStalled
		switch s.Reason {
		case v1beta1.ReasonHalted, v1beta1.ReasonRolledBack:
			severity = SeverityHalted
		case v1beta1.ReasonNodeLost:
			severity = SeverityLost
		}
		s.Attention = append(s.Attention, Attention{Severity: severity, Reason: s.Reason, Message: s.Message, Since: s.Since})
	}
}
