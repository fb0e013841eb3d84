package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
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
		p.Wait = c.wait(&p.Status)
	}
	return p
}

// rollout notes how far the Deployment is, as `kubectl rollout status` tells it.
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
		c.waits = append(c.waits, fmt.Sprintf("%s: %d of %d pods are as they should be", child, s.UpdatedReplicas, want))
	case s.Replicas > s.UpdatedReplicas:
		c.waits = append(c.waits, fmt.Sprintf("%s: %d old pods are left", child, s.Replicas-s.UpdatedReplicas))
	case s.AvailableReplicas < want:
		c.waits = append(c.waits, fmt.Sprintf("%s: %d of %d pods are available", child, s.AvailableReplicas, want))
	}
}

func (c *computation) setConditions(s *appv1.AppStatus) {
	set := func(kind string, status bool, reason, text string) {
		condition := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message.Bound(text),
			ObservedGeneration: c.app.Generation, LastTransitionTime: metav1.NewTime(c.in.Now)}
		if status {
			condition.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, condition)
	}
	well := message.Join(append([]string{Synced}, c.notes...), "; ")
	waits := message.Join(c.waits, "; ")
	stalled, stalledReason := c.stalled(), appv1.ReasonSynced
	if len(c.stalls) > 0 {
		stalledReason = c.stalls[0].reason
	}

	switch {
	case len(c.stalls) > 0:
		set(appv1.ConditionReady, false, stalledReason, stalled)
	case len(c.waits) > 0:
		set(appv1.ConditionReady, false, ReasonProgressing, waits)
	default:
		set(appv1.ConditionReady, true, appv1.ReasonSynced, well)
	}
	if len(c.waits) > 0 && len(c.stalls) == 0 { // kstatus: what is stalled is not reconciling
		set(appv1.ConditionReconciling, true, ReasonProgressing, waits)
	} else {
		set(appv1.ConditionReconciling, false, stalledReason, "nothing is on its way")
	}
	if len(c.stalls) > 0 {
		set(appv1.ConditionStalled, true, stalledReason, stalled)
	} else {
		set(appv1.ConditionStalled, false, appv1.ReasonSynced, "nothing is in the way")
	}
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
	told := ""
	if before := meta.FindStatusCondition(c.in.App.Status.Conditions, appv1.ConditionStalled); before != nil && before.Status == metav1.ConditionTrue {
		told = before.Message
	}
	if told == c.stalled() {
		return
	}
	for _, s := range c.stalls {
		if s.event != nil && !strings.Contains(told, s.message) && !slices.Contains(p.Events, *s.event) {
			p.Events = append(p.Events, *s.event)
		}
	}
}

// wait is longer the longer a name has been taken.
func (c *computation) wait(s *appv1.AppStatus) time.Duration {
	out := minWait
	if stalled := meta.FindStatusCondition(s.Conditions, appv1.ConditionStalled); stalled != nil {
		out = min(max(out, c.in.Now.Sub(stalled.LastTransitionTime.Time)), maxWait)
	}
	return out
}
