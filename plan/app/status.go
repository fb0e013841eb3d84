package app

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/plan/condition"
	"tkestack.io/tapp/plan/message"
)

// Words and reasons that users watch for.
const (
	// ResourceExists is the message of events about a name that is taken.
	ResourceExists = "Resource %q already exists and is not managed by App"
	// Synced is the message of the event that all is as the App says.
	Synced = "App synced successfully"

	// ReasonRefused is why a child is stalled that the API server does not take.
	ReasonRefused = "Refused"
	// ReasonProgressing is why an App is not ready that is on its way.
	ReasonProgressing = "Progressing"
)

// conclude makes the plan's status of what was found out.
func (c *computation) conclude() Plan {
	s := c.app.Status.DeepCopy()
	s.ObservedGeneration = c.app.Generation
	s.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: selectorOf(c.app)})
	s.Ready, s.DeploymentStatus, s.ServiceStatus = "", nil, nil
	t := &c.app.Spec.DeploymentTemplate
	if t.Name != "" {
		ready := int32(0)
		if c.deployment != nil {
			ready = c.deployment.Status.ReadyReplicas
		}
		s.Ready = fmt.Sprintf("%d/%d", ready, *t.Replicas)
	}
	if c.deployment != nil {
		s.DeploymentStatus = c.deployment.Status.DeepCopy()
		c.rollout(c.deployment)
	}
	if c.service != nil {
		s.ServiceStatus = c.service.Status.DeepCopy()
	}
	p := Plan{Actions: c.actions, Status: *s, Moving: len(c.waits) > 0 && len(c.stalls) == 0}
	c.setConditions(&p.Status)
	c.tell(&p)
	if c.taken {
		p.Wait = condition.Wait(p.Status.Conditions, c.in.Now)
	}
	return p
}

// rollout notes how far the Deployment is, as `kubectl rollout status` tells it. Pods beyond those
// that are asked for are waited for, too, as kstatus does.
func (c *computation) rollout(d *appsv1.Deployment) {
	child := Child{Deployment, d.Name}
	for _, condition := range d.Status.Conditions {
		failed := condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue
		late := condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse
		if failed || late {
			c.stalls = append(c.stalls, stall{reason: condition.Reason, message: fmt.Sprintf("%s: %s", child, message.Quote(condition.Message))})
		}
	}
	want := *c.app.Spec.DeploymentTemplate.Replicas
	switch s := &d.Status; {
	case d.DeletionTimestamp != nil: // noted already
	case s.ObservedGeneration < d.Generation:
		c.waits = append(c.waits, fmt.Sprintf("%s has not been looked at yet", child))
	case s.UpdatedReplicas < want:
		paused := ""
		if d.Spec.Paused { // which the App leaves to who set it
			paused = ", and the Deployment is paused"
		}
		c.waits = append(c.waits, fmt.Sprintf("%s: %d of %d pods are as they should be%s", child, s.UpdatedReplicas, want, paused))
	case s.Replicas > s.UpdatedReplicas:
		c.waits = append(c.waits, fmt.Sprintf("%s: %d old pods are left", child, s.Replicas-s.UpdatedReplicas))
	case s.Replicas > want:
		c.waits = append(c.waits, fmt.Sprintf("%s: %d pods are there, and %d are asked for", child, s.Replicas, want))
	case s.AvailableReplicas < want:
		c.waits = append(c.waits, fmt.Sprintf("%s: %d of %d pods are available", child, s.AvailableReplicas, want))
	}
}

func (c *computation) setConditions(s *appv1.AppStatus) {
	w := condition.Writer{Conditions: &s.Conditions, Generation: c.app.Generation, Now: c.in.Now}
	work := condition.Work{Waits: message.Join(c.waits, "; "), Progress: ReasonProgressing, Stalled: c.stalled()}
	switch {
	case len(c.stalls) > 0:
		work.Reason = c.stalls[0].reason
		w.Set(appv1.ConditionReady, metav1.ConditionFalse, work.Reason, work.Stalled)
	case len(c.waits) > 0:
		w.Set(appv1.ConditionReady, metav1.ConditionFalse, work.Progress, work.Waits)
	default:
		w.Set(appv1.ConditionReady, metav1.ConditionTrue, appv1.ReasonSynced, message.Join(append([]string{Synced}, c.notes...), "; "))
	}
	w.SetWork(work)
}

// stalled says what the App is stalled by.
func (c *computation) stalled() string {
	stalls := make([]string, 0, len(c.stalls))
	for _, stall := range c.stalls {
		stalls = append(stalls, stall.message)
	}
	return message.Join(stalls, "; ")
}

// tell makes events of what the stored status does not say yet. One that says as much as
// it has room for says it all.
func (c *computation) tell(p *Plan) {
	told := condition.Stalled(c.in.App.Status.Conditions)
	if told == c.stalled() {
		return
	}
	for _, s := range c.stalls {
		if s.event != nil && !strings.Contains(told, s.message) && !slices.Contains(p.Events, *s.event) {
			p.Events = append(p.Events, *s.event)
		}
	}
}
