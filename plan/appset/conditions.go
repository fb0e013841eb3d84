package appset

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/condition"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// phase in one word: the first that holds.
func (c *computation) phase(s *v1beta1.AppSetStatus, done bool) v1beta1.Phase {
	switch {
	case c.deleting():
		return v1beta1.PhaseDeleting
	case c.frozen:
		return v1beta1.PhaseInvalid
	case c.isIn(rollout.Halted):
		return v1beta1.PhaseHalted
	case c.isIn(rollout.RollingBack):
		return v1beta1.PhaseRollingBack
	case c.isIn(rollout.RolledBack):
		return v1beta1.PhaseRolledBack
	case slices.ContainsFunc(c.sites, func(s *site) bool { return s.listed && !s.certain() }):
		return v1beta1.PhaseUnknown
	case c.isIn(rollout.Waiting):
		return v1beta1.PhaseWaitingForConfirm
	case c.app.Spec.UpdateStrategy.Paused && (c.isIn(rollout.Staged, rollout.Returning) || c.pending(done, (*site).isChanging)):
		return v1beta1.PhasePaused
	}
	return c.motion(s, done)
}

// isIn says whether the rollout is in one of these states.
func (c *computation) isIn(states ...rollout.State) bool {
	return c.rolling != nil && !c.deleting() && slices.Contains(states, c.rolling.decision.State)
}

// motion is the phase of an AppSet that is neither stalled nor waits for a cluster.
func (c *computation) motion(s *v1beta1.AppSetStatus, done bool) v1beta1.Phase {
	stored := &c.app.Status.AggrStatus
	switch {
	case !done && (s.Rollout == nil || s.Rollout.Stable == ""), c.pending(done, (*site).isNew):
		return v1beta1.PhaseInstalling
	case c.pending(done, (*site).isChanging), c.isIn(rollout.Staged, rollout.Returning):
		return v1beta1.PhaseUpdating
	case !done && (stored.Status == v1beta1.PhaseScaling || stored.Desired != s.AggrStatus.Desired), slices.ContainsFunc(c.sites, (*site).waits):
		return v1beta1.PhaseScaling
	case c.pending(done, func(s *site) bool { return !s.asWanted || !s.isObserved() }):
		return v1beta1.PhaseUpdating
	case slices.ContainsFunc(c.sites, c.leaves):
		return v1beta1.PhaseMigrating
	case !done || len(c.stalls) > 0:
		return v1beta1.PhaseDegraded
	}
	return v1beta1.PhaseRunning
}

// pending says whether not all is done, and judge is true of some cluster that is to have a
// part.
func (c *computation) pending(done bool, judge func(*site) bool) bool {
	return !done && slices.ContainsFunc(c.sites, func(s *site) bool { return s.spec != nil && judge(s) })
}

// isNew says whether there is nothing yet of a cluster's part, or of one of its podSets.
func (s *site) isNew() bool {
	return !s.ours || slices.ContainsFunc(s.units, func(u podset.Unit) bool {
		p := s.podSet(u.PodSet.Name)
		return p == nil || p.HaveDeploy != nil && !*p.HaveDeploy
	})
}

// isChanging says whether instances of a cluster are to get another content.
func (s *site) isChanging() bool {
	if !s.ours || s.Part.Annotations[v1beta1.AnnotationRevision] != s.revision {
		return s.ours
	}
	return slices.ContainsFunc(s.Part.Status.AggrStatus.PodSets, func(p v1beta1.PodSetStatus) bool {
		return p.Update != nil && p.Current != nil && *p.Current > *p.Update
	})
}

func (c *computation) setConditions(s *v1beta1.AppSetStatus, done bool) {
	w := condition.Writer{Conditions: &s.Conditions, Generation: c.app.Generation, Now: c.in.Now}
	work := condition.Work{Waits: message.Join(c.waits, "; "), Progress: v1beta1.ReasonProgressing, Stalled: c.stalled()}
	if c.deleting() {
		work.Progress = v1beta1.ReasonDeleting
	}
	silent := c.silent()
	switch {
	case len(c.stalls) > 0:
		work.Reason = c.stalls[0].reason
		w.Set(v1beta1.ConditionReady, metav1.ConditionFalse, work.Reason, work.Stalled)
	case len(silent) > 0:
		w.Set(v1beta1.ConditionReady, metav1.ConditionUnknown, ReasonUnreachable, work.Waits)
	case len(c.waits) > 0 || !done:
		w.Set(v1beta1.ConditionReady, metav1.ConditionFalse, work.Progress, work.Waits)
	default:
		well := []string{"all instances are available"}
		for _, n := range c.notes {
			well = append(well, n.Field+": "+n.Why)
		}
		w.Set(v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonSynced, message.Join(well, "; "))
	}
	w.SetWork(work)
	c.setAwaiting(w)
	if len(silent) > 0 {
		w.Set(v1beta1.ConditionClustersReachable, metav1.ConditionFalse, ReasonUnreachable, "not heard: "+message.Join(silent, ", "))
	} else {
		w.Set(v1beta1.ConditionClustersReachable, metav1.ConditionTrue, ReasonReachable, "all clusters are heard")
	}
}

// setAwaiting says whether a gate waits. An AppSet that never had one has no such condition.
func (c *computation) setAwaiting(w condition.Writer) {
	before := meta.FindStatusCondition(c.app.Status.Conditions, v1beta1.ConditionAwaitingConfirmation)
	switch {
	case c.isIn(rollout.Waiting):
		d := &c.rolling.decision
		stage := &d.Stages[d.Current]
		w.Set(v1beta1.ConditionAwaitingConfirmation, metav1.ConditionTrue, ReasonGate, fmt.Sprintf("%s: rollout %s, stage %s, token %s", d.Why, d.Record.ID, stage.Name, stage.Token))
	case before != nil:
		w.Set(v1beta1.ConditionAwaitingConfirmation, metav1.ConditionFalse, v1beta1.ReasonSynced, "no gate waits")
	}
}

// silent are the clusters of the topology of which nothing is known for certain.
func (c *computation) silent() (out []string) {
	for _, s := range c.sites {
		if s.listed && !s.certain() {
			out = append(out, fmt.Sprintf("%s (%s)", s.title, s.State))
		}
	}
	return out
}

func (c *computation) stalled() string {
	stalls := make([]string, 0, len(c.stalls))
	for _, stall := range c.stalls {
		stalls = append(stalls, stall.message)
	}
	return message.Join(stalls, "; ")
}

// tell makes events of what the stored status does not say yet.
func (c *computation) tell(p *Plan) {
	told := condition.Stalled(c.app.Status.Conditions)
	if told == c.stalled() {
		return
	}
	for _, s := range c.stalls {
		if !strings.Contains(told, s.message) {
			p.Events = append(p.Events, Event{"Warning", s.reason, message.Bound(s.message)})
		}
	}
}
