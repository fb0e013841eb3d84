package advdeployment

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/rollout"
)

// phase in one word: the first that holds.
func (c *computation) phase(s, stored *v1beta1.AdvDeploymentStatus) v1beta1.Phase {
	sums := &s.AggrStatus
	paused := c.d.Spec.UpdateStrategy.Paused && s.CurrentRevision != s.UpdateRevision
	scales := stored.AggrStatus.Status == v1beta1.PhaseScaling || stored.AggrStatus.Desired != sums.Desired
	surplus := slices.ContainsFunc(c.units, func(u unit) bool { return u.numbers.current > u.numbers.desired })
	switch {
	case c.d.DeletionTimestamp != nil:
		return v1beta1.PhaseDeleting
	case c.invalid:
		return v1beta1.PhaseInvalid
	case c.isIn(rollout.Halted):
		return v1beta1.PhaseHalted
	case c.isIn(rollout.RollingBack):
		return v1beta1.PhaseRollingBack
	case c.isIn(rollout.RolledBack):
		return v1beta1.PhaseRolledBack
	case c.isIn(rollout.Waiting):
		return v1beta1.PhaseWaitingForConfirm
	case paused:
		return v1beta1.PhasePaused
	case s.CurrentRevision == "" && len(c.units) > 0:
		return v1beta1.PhaseInstalling
	case s.CurrentRevision != s.UpdateRevision:
		return v1beta1.PhaseUpdating
	case scales && (surplus || sums.Available < sums.Desired):
		return v1beta1.PhaseScaling
	case len(c.leftOver) > 0:
		return v1beta1.PhaseMigrating
	case !c.done():
		return v1beta1.PhaseDegraded
	}
	return v1beta1.PhaseRunning
}

func (c *computation) setConditions(s *v1beta1.AdvDeploymentStatus) {
	set := func(kind string, status bool, reason, text string) {
		condition := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message.Bound(text),
			ObservedGeneration: c.d.Generation, LastTransitionTime: metav1.NewTime(c.in.Now.Truncate(time.Second))}
		if status {
			condition.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, condition)
	}
	well := message.Join(append([]string{Synced}, c.notes...), "; ")
	waits := message.Join(c.waits, "; ")
	stalled, reason := c.stalled(), v1beta1.ReasonSynced
	if len(c.stalls) > 0 {
		reason = c.stalls[0].reason
	}
	progress := v1beta1.ReasonProgressing
	if c.d.DeletionTimestamp != nil {
		progress = v1beta1.ReasonDeleting
	}
	switch {
	case len(c.stalls) > 0:
		set(v1beta1.ConditionReady, false, reason, stalled)
	case len(c.waits) > 0 || c.d.DeletionTimestamp != nil:
		set(v1beta1.ConditionReady, false, progress, waits)
	default:
		set(v1beta1.ConditionReady, true, v1beta1.ReasonSynced, well)
	}
	if len(c.waits) > 0 && len(c.stalls) == 0 { // kstatus: what is stalled is not reconciling
		set(v1beta1.ConditionReconciling, true, progress, waits)
	} else {
		set(v1beta1.ConditionReconciling, false, reason, "nothing is on its way")
	}
	if len(c.stalls) > 0 {
		set(v1beta1.ConditionStalled, true, reason, stalled)
	} else {
		set(v1beta1.ConditionStalled, false, v1beta1.ReasonSynced, "nothing is in the way")
	}
}

// stalled is the message of the condition Stalled.
func (c *computation) stalled() string {
	stalls := make([]string, 0, len(c.stalls))
	for _, stall := range c.stalls {
		stalls = append(stalls, stall.message)
	}
	return message.Join(stalls, "; ")
}

// tell makes events of what the stored status does not say yet.
func (c *computation) tell(p *Plan) {
	told := ""
	if before := meta.FindStatusCondition(c.in.AdvDeployment.Status.Conditions, v1beta1.ConditionStalled); before != nil && before.Status == metav1.ConditionTrue {
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

// wait is as long as a name has been taken, between minWait and maxWait.
func (c *computation) wait(s *v1beta1.AdvDeploymentStatus) time.Duration {
	out := minWait
	if stalled := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionStalled); stalled != nil {
		out = min(max(out, c.in.Now.Sub(stalled.LastTransitionTime.Time)), maxWait)
	}
	return out
}
