package appset

import (
	"cmp"
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
	if stalled := s.stalled(); stalled != nil && (s.asWanted && s.isObserved() || !podset.IsFault(stalled.Reason)) { // else it is about what was asked for before
		reason := cmp.Or(stalled.Reason, ReasonPartStalled)
		said := s.tell(reason, "cluster %s: %s", s.title, message.Quote(stalled.Message))
		if c.isMended(s, stalled.Reason) {
			c.wait("%s; another content is on its way there", said)
			return
		}
		c.stall(reason, "%s", said)
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

// stalled is what the part says that it cannot go on for; nil: it can.
func (s *site) stalled() *metav1.Condition {
	if stalled := meta.FindStatusCondition(s.Part.Status.Conditions, v1beta1.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
		return stalled
	}
	return nil
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
	if out.Message == "" && s.certain() && s.State == v1beta1.ClusterReady { // it holds nothing up, and somebody has to know
		out.Message = message.Cut(s.Message, maxMessage)
	}
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
	for _, note := range s.waiting {
		i := slices.IndexFunc(out.PodSets, func(p v1beta1.PodSetStatus) bool { return p.Name == note.Field })
		u := slices.IndexFunc(s.units, func(u podset.Unit) bool { return u.PodSet.Name == note.Field })
		out.PodSets[i].Desired, out.PodSets[i].Reason, out.PodSets[i].Message = s.units[u].Replicas, ReasonHeld, note.Why
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
