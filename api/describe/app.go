package describe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "tkestack.io/tapp/api/v1"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// App is a line of the list.
func App(stored *appv1.App) apiv1.App {
	d := stored.DeepCopy()
	appv1.Default(d)
	t := &d.Spec.DeploymentTemplate
	out := apiv1.App{
		Summary: apiv1.Summary{Namespace: d.Namespace, Name: d.Name, UID: string(d.UID), Created: d.CreationTimestamp, Generation: d.Generation, ObservedGeneration: d.Status.ObservedGeneration},
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
func judge(s *apiv1.Summary, deleted *metav1.Time, conditions []metav1.Condition) {
	stalled, ready := meta.FindStatusCondition(conditions, appv1.ConditionStalled), meta.FindStatusCondition(conditions, appv1.ConditionReady)
	from := ready
	s.State = apiv1.StateProgressing
	switch {
	case deleted != nil:
		s.State, s.Since = apiv1.StateDeleting, deleted
	case s.ObservedGeneration < s.Generation:
		s.State = apiv1.StateUnobserved
		return
	case isTrue(stalled):
		s.State, from = apiv1.StateStalled, stalled
	case isTrue(ready):
		s.State = apiv1.StateReady
	}
	if from != nil {
		s.Reason, s.Message, s.Since = from.Reason, from.Message, &from.LastTransitionTime
	}
	if s.State == apiv1.StateStalled {
		severity := apiv1.SeverityStalled
		switch s.Reason {
		case v1beta1.ReasonHalted, v1beta1.ReasonRolledBack:
			severity = apiv1.SeverityHalted
		case v1beta1.ReasonNodeLost:
			severity = apiv1.SeverityLost
		}
		s.Attention = append(s.Attention, apiv1.Attention{Severity: severity, Reason: s.Reason, Message: s.Message, Since: s.Since})
	}
}

// AppDetail is all that is told of an App.
func AppDetail(app *appv1.App) (*apiv1.AppDetail, error) {
	d := &apiv1.AppDetail{App: App(app)}
	d.Commands = []apiv1.Hint{hint("Show it with its events", fmt.Sprintf("kubectl describe apps.%s %s -n %s", appv1.GroupName, app.Name, app.Namespace))}
	if d.Deployment != "" {
		d.Commands = append(d.Commands, hint("Follow its Deployment", fmt.Sprintf("kubectl rollout status deployment/%s -n %s", d.Deployment, app.Namespace)))
	}
	text, err := Manifest(app, appv1.SchemeGroupVersion.String(), appv1.Kind)
	d.Object = text
	return d, err
}
