package appset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// maxMessage is how long the message of a cluster or podSet may be, in bytes, by the CRD.
const maxMessage = 256

// conclude makes the status and the plan from what the other steps noted.
func (c *computation) conclude() Plan {
	stored := &c.app.Status
	s := stored.DeepCopy()
	s.ObservedGeneration = c.app.Generation
	for _, one := range c.sites {
		c.progress(one)
	}
	done := c.allDone()
	if c.rolling != nil && len(c.units) > 0 {
		c.tellRollout(s)
	}
	slices.SortStableFunc(c.stalls, func(a, b stall) int { return podset.FaultsFirst(a.reason, b.reason) })
	s.AggrStatus = c.sums()
	s.AggrStatus.Status = c.phase(s, done)
	c.setConditions(s, done)
	if !equality.Semantic.DeepEqual(s, stored) {
		s.LastUpdateTime = new(metav1.NewTime(c.in.Now.Truncate(time.Second)))
	}
	p := Plan{Own: c.own, Keep: c.keep, Obsolete: c.obsolete, Actions: c.actions, Forget: c.forget, Status: *s, Moving: len(c.waits) > 0 && len(c.stalls) == 0}
	c.tell(&p)
	if c.taken {
		p.Wait = waitTaken
	}
	if c.rolling != nil && !c.frozen && (p.Wait == 0 || c.rolling.decision.Wait > 0 && c.rolling.decision.Wait < p.Wait) {
		p.Wait = c.rolling.decision.Wait
	}
	return p
}

// progress notes how far a part is that is as the AppSet says.
func (c *computation) progress(s *site) {
	if !s.ours || !s.certain() || c.deleting() || s.spec == nil {
		return
	}
	if stalled := meta.FindStatusCondition(s.Part.Status.Conditions, v1beta1.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
		reason := cmp.Or(stalled.Reason, ReasonPartStalled)
		c.stall(reason, "%s", s.tell(reason, "cluster %s: %s", s.title, message.Quote(stalled.Message)))
		return
	}
	if !s.asWanted || c.isDone(s) {
		return
	}
	sums := &s.Part.Status.AggrStatus
	if s.isObserved() {
		c.wait("cluster %s: %d of %d instances are available", s.title, sums.Available, sums.Desired)
		return
	}
	c.wait("cluster %s: its controller has not carried out the part yet", s.title)
}

// isObserved says whether the status of the part is about its present spec.
func (s *site) isObserved() bool {
	return s.ours && s.Part.Status.ObservedGeneration == s.Part.Generation
}

// isDone says whether a cluster is certain, and all that the AppSet asks for is available
// there.
func (c *computation) isDone(s *site) bool {
	if !s.certain() || !s.asWanted || !s.isObserved() || s.Part.DeletionTimestamp != nil {
		return false
	}
	for i := range s.Part.Spec.Topology.PodSets {
		p := s.podSet(s.Part.Spec.Topology.PodSets[i].Name)
		if p == nil || p.Available != p.Desired || p.Update == nil || *p.Update != p.Desired {
			return false
		}
	}
	return true
}

// podSet is what the part's controller says of one; nil: nothing.
func (s *site) podSet(name string) *v1beta1.PodSetStatus {
	if !s.ours {
		return nil
	}
	all := s.Part.Status.AggrStatus.PodSets
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

func (c *computation) allDone() bool {
	return !c.frozen && !c.deleting() && len(c.unfetched) == 0 && (c.rolling == nil || c.rolling.decision.State == rollout.Done) && !slices.ContainsFunc(c.sites, func(s *site) bool { return s.spec != nil && !c.isDone(s) })
}

// sums over all clusters, and each of them. Those that left count for nothing.
func (c *computation) sums() v1beta1.AppSetAggregate {
	out := v1beta1.AppSetAggregate{}
	var versions []string
	for _, s := range c.sites {
		one := c.status(s)
		out.Clusters = append(out.Clusters, one)
		for i := range one.PodSets {
			versions = append(versions, strings.FieldsFunc(one.PodSets[i].Version, func(r rune) bool { return r == '/' })...)
		}
		if !s.listed {
			continue
		}
		out.Desired += one.Desired
		if s.certain() {
			out.Available += min(one.Available, one.Desired)
		} else {
			out.Unknown += one.Desired
		}
	}
	out.UnAvailable = out.Desired - out.Available
	slices.Sort(versions)
	out.Version = strings.Join(slices.Compact(versions), "/")
	return out
}

// status of one cluster: what was seen last.
func (c *computation) status(s *site) v1beta1.ClusterStatus {
	out := v1beta1.ClusterStatus{Name: s.title, State: s.State, Reason: s.reason, Message: message.Cut(s.message, maxMessage)}
	if !s.certain() && !s.AsOf.IsZero() {
		out.AsOf = new(metav1.NewTime(s.AsOf.Truncate(time.Second)))
	}
	var seen []v1beta1.PodSetStatus
	if s.ours {
		seen = s.Part.Status.AggrStatus.PodSets
	}
	for i := range s.units {
		u := &s.units[i]
		p := v1beta1.PodSetStatus{Name: u.PodSet.Name}
		if reported := s.podSet(u.PodSet.Name); reported != nil {
			p = *reported.DeepCopy()
		}
		if !s.asWanted || !s.isObserved() {
			p.Desired = u.Replicas
		}
		out.PodSets = append(out.PodSets, p)
	}
	for i := range s.missing {
		u := &s.missing[i]
		out.PodSets = append(out.PodSets, v1beta1.PodSetStatus{Name: u.PodSet.Name, Desired: u.Replicas, Message: c.unfetched[keyOf(s.Name, u.PodSet.Name)]})
	}
	for i := range seen { // those that leave
		if !slices.ContainsFunc(s.units, func(u podset.Unit) bool { return u.PodSet.Name == seen[i].Name }) {
			out.PodSets = append(out.PodSets, *seen[i].DeepCopy())
		}
	}
	for i := range out.PodSets {
		p := &out.PodSets[i]
		c.tellVerdict(s, p)
		p.ClusterName, p.UnAvailable = s.title, max(0, p.Desired-p.Available)
		p.Message = message.Cut(p.Message, maxMessage)
		out.Desired, out.Available = out.Desired+p.Desired, out.Available+p.Available
	}
	out.UnAvailable = max(0, out.Desired-out.Available)
	return out
}

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
	case !done && (stored.Status == v1beta1.PhaseScaling || stored.Desired != s.AggrStatus.Desired):
		return v1beta1.PhaseScaling
	case c.pending(done, func(s *site) bool { return !s.asWanted || !s.isObserved() }):
		return v1beta1.PhaseUpdating
	case slices.ContainsFunc(c.sites, c.leaves):
		return v1beta1.PhaseMigrating
	case !done:
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
	set := func(kind string, status metav1.ConditionStatus, reason, text string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message.Bound(text),
			ObservedGeneration: c.app.Generation, LastTransitionTime: metav1.NewTime(c.in.Now)})
	}
	waits, stalled, reason := message.Join(c.waits, "; "), c.stalled(), v1beta1.ReasonSynced
	silent := c.silent()
	progressing := v1beta1.ReasonProgressing
	if c.deleting() {
		progressing = v1beta1.ReasonDeleting
	}
	switch {
	case len(c.stalls) > 0:
		reason = c.stalls[0].reason
		set(v1beta1.ConditionReady, metav1.ConditionFalse, reason, stalled)
	case len(silent) > 0:
		set(v1beta1.ConditionReady, metav1.ConditionUnknown, ReasonUnreachable, waits)
	case len(c.waits) > 0 || !done:
		set(v1beta1.ConditionReady, metav1.ConditionFalse, progressing, waits)
	default:
		well := []string{"all instances are available"}
		for _, n := range c.notes {
			well = append(well, n.Field+": "+n.Why)
		}
		set(v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonSynced, message.Join(well, "; "))
	}
	if len(c.waits) > 0 && len(c.stalls) == 0 { // kstatus: what is stalled is not reconciling
		set(v1beta1.ConditionReconciling, metav1.ConditionTrue, progressing, waits)
	} else {
		set(v1beta1.ConditionReconciling, metav1.ConditionFalse, reason, "nothing is on its way")
	}
	if len(c.stalls) > 0 {
		set(v1beta1.ConditionStalled, metav1.ConditionTrue, reason, stalled)
	} else {
		set(v1beta1.ConditionStalled, metav1.ConditionFalse, v1beta1.ReasonSynced, "nothing is in the way")
	}
	c.setAwaiting(set)
	if len(silent) > 0 {
		set(v1beta1.ConditionClustersReachable, metav1.ConditionFalse, ReasonUnreachable, "not heard: "+message.Join(silent, ", "))
	} else {
		set(v1beta1.ConditionClustersReachable, metav1.ConditionTrue, ReasonReachable, "all clusters are heard")
	}
}

// setAwaiting says whether a gate waits. An AppSet that never had one has no such condition.
func (c *computation) setAwaiting(set func(kind string, status metav1.ConditionStatus, reason, text string)) {
	before := meta.FindStatusCondition(c.app.Status.Conditions, v1beta1.ConditionAwaitingConfirmation)
	switch {
	case c.isIn(rollout.Waiting):
		d := &c.rolling.decision
		stage := &d.Stages[d.Current]
		set(v1beta1.ConditionAwaitingConfirmation, metav1.ConditionTrue, ReasonGate, fmt.Sprintf("%s: rollout %s, stage %s, token %s", d.Why, d.Record.ID, stage.Name, stage.Token))
	case before != nil:
		set(v1beta1.ConditionAwaitingConfirmation, metav1.ConditionFalse, v1beta1.ReasonSynced, "no gate waits")
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
	told := ""
	if before := meta.FindStatusCondition(c.app.Status.Conditions, v1beta1.ConditionStalled); before != nil && before.Status == metav1.ConditionTrue {
		told = before.Message
	}
	if told == c.stalled() {
		return
	}
	for _, s := range c.stalls {
		if !strings.Contains(told, s.message) {
			p.Events = append(p.Events, Event{"Warning", s.reason, message.Bound(s.message)})
		}
	}
}
