package advdeployment

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/condition"
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
	w := condition.Writer{Conditions: &s.Conditions, Generation: c.d.Generation, Now: c.in.Now.Truncate(time.Second)}
	work := condition.Work{Waits: message.Join(c.waits, "; "), Progress: v1beta1.ReasonProgressing, Stalled: c.stalled()}
	if c.d.DeletionTimestamp != nil {
		work.Progress = v1beta1.ReasonDeleting
	}
	switch {
	case len(c.stalls) > 0:
		work.Reason = c.stalls[0].reason
		w.Set(v1beta1.ConditionReady, metav1.ConditionFalse, work.Reason, work.Stalled)
	case len(c.waits) > 0 || c.d.DeletionTimestamp != nil:
		w.Set(v1beta1.ConditionReady, metav1.ConditionFalse, work.Progress, work.Waits)
	default:
		w.Set(v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonSynced, message.Join(append([]string{Synced}, c.notes...), "; "))
	}
	w.SetWork(work)
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
	told := condition.Stalled(c.in.AdvDeployment.Status.Conditions)
	if told == c.stalled() {
		return
	}
	for _, s := range c.stalls {
		if s.event != nil && !strings.Contains(told, s.message) && !slices.Contains(p.Events, *s.event) {
			p.Events = append(p.Events, *s.event)
		}
	}
}
