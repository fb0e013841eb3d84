package advdeployment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/condition"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
	"tkestack.io/tapp/plan/template"
)

// Synced is the message of the event that all is as the AdvDeployment says.
const Synced = "AdvDeployment synced successfully"

// maxPodSetMessage is how long the message of one podSet may be, in bytes, by the CRD.
const maxPodSetMessage = 256

// conclude makes the status and the plan from what the other steps noted.
func (c *computation) conclude() Plan {
	stored := c.in.AdvDeployment.Status
	s := stored.DeepCopy()
	slices.SortStableFunc(c.stalls, func(a, b stall) int { return podset.FaultsFirst(a.reason, b.reason) })
	if !c.unseen || len(c.stalls) > 0 {
		s.ObservedGeneration = c.d.Generation
	}
	if !c.invalid {
		s.AggrStatus = c.sums(&stored)
		s.UpdateRevision = c.revision()
		s.Rollout = nil
		if c.rolling != nil {
			s.UpdateRevision, s.Rollout = c.rolling.target, podset.RolloutStatus(&c.rolling.decision)
		}
		if c.done() {
			s.CurrentRevision = s.UpdateRevision
		}
	}
	s.AggrStatus.Status = c.phase(s, &stored)
	p := Plan{Keep: c.keep, Obsolete: c.obsolete, Actions: c.actions, Releases: c.releases, Moving: len(c.waits) > 0 && len(c.stalls) == 0}
	c.setConditions(s)
	if !equality.Semantic.DeepEqual(*s, stored) {
		s.LastUpdateTime = new(metav1.NewTime(c.in.Now.Truncate(time.Second)))
	}
	p.Status = *s
	c.tell(&p)
	if c.taken {
		p.Wait = condition.Wait(s.Conditions, c.in.Now)
	}
	if c.rolling != nil && c.rolling.decision.Wait > 0 && (p.Wait == 0 || c.rolling.decision.Wait < p.Wait) {
		p.Wait = c.rolling.decision.Wait
	}
	c.poll(&p)
	return p
}

// done says whether all podSets have their content and all their instances.
func (c *computation) done() bool {
	return !c.invalid && len(c.stalls) == 0 && (c.rolling == nil || c.isIn(rollout.Done)) && c.d.DeletionTimestamp == nil &&
		!slices.ContainsFunc(c.units, func(u unit) bool { return !u.done() })
}

// revision is the hash of what all podSets are to have.
func (c *computation) revision() string {
	units := make([]podset.Unit, 0, len(c.units))
	for i := range c.units {
		units = append(units, c.units[i].Unit)
	}
	return revisionOf(units)
}

func revisionOf(units []podset.Unit) string {
	if len(units) == 0 {
		return ""
	}
	contents := make([]string, 0, len(units))
	for i := range units {
		contents = append(contents, units[i].PodSet.Name+"="+units[i].Hash)
	}
	slices.Sort(contents)
	return template.Digest([]byte(strings.Join(contents, "\n")))
}

// progress notes how far a podSet is.
func (c *computation) progress(u *unit) {
	if u.child.Kind == "" {
		return
	}
	n := u.numbers
	unborn := c.rolling != nil && u.upToDate && u.have == nil // its turn has not come
	c.unseen = c.unseen || !unborn && (!u.upToDate || !n.observed)
	if u.have == nil || u.have.GetDeletionTimestamp() != nil || !u.upToDate {
		return // noted already
	}
	for _, f := range n.failures {
		said := fmt.Sprintf("%s: %s", u.child, message.Quote(f.message))
		if podset.IsFault(f.reason) && c.isReplaced(u) {
			c.waits = append(c.waits, said+"; another content is on its way there")
			continue
		}
		c.stalls = append(c.stalls, stall{reason: f.reason, message: said})
	}
	if why := u.waitsFor(); why != "" {
		c.waits = append(c.waits, fmt.Sprintf("%s: %s", u.child, why))
	}
}

// isReplaced says whether the rollout under way is to give a podSet another content in its turn than
// it has: what is wrong with that needs no help.
func (c *computation) isReplaced(u *unit) bool {
	if c.d.Spec.UpdateStrategy.Paused || !c.isIn(rollout.Staged, rollout.Waiting, rollout.Returning) {
		return false
	}
	i := slices.IndexFunc(c.rolling.in.Units, func(r rollout.Unit) bool { return r.Name == u.PodSet.Name })
	return i >= 0 && c.rolling.in.Units[i].Has != c.rolling.in.Units[i].Target && !c.rolling.decision.Units[i].Failed
}

// waitsFor says what a podSet waits for; empty: nothing.
func (u *unit) waitsFor() string {
	n := u.numbers
	switch {
	case u.have == nil:
		return "it does not exist yet"
	case !n.observed:
		return fmt.Sprintf("the controller of %ss has not looked at it yet", u.child.Kind)
	case n.updated < n.desired:
		return fmt.Sprintf("%d of %d instances have the content that they are to have", n.updated, n.desired)
	case n.current > n.desired:
		return fmt.Sprintf("%d instances too many are left", n.current-n.desired)
	case n.available < n.desired:
		return fmt.Sprintf("%d of %d instances are available", n.available, n.desired)
	}
	return ""
}

// done says whether a podSet is where it is to be.
func (u *unit) done() bool { return u.upToDate && u.waitsFor() == "" }

// isAtRest says whether all instances of a podSet are available, and it makes no further step
// for now: it is done, or has a grant of 0. Children that nothing asks for are deleted then.
// They do not wait for podSets with a grant of 0, because they are charged to the budget
// themselves, and the two would wait for each other.
func (u *unit) isAtRest() bool {
	n, grant := u.numbers, u.placed.MaxUnavailable
	held := u.upToDate && n.observed && grant != nil && *grant == 0
	return u.done() || held && n.current <= n.desired && n.available >= n.desired
}

// sums over all podSets, and each of them.
func (c *computation) sums(stored *v1beta1.AdvDeploymentStatus) v1beta1.AdvDeploymentAggregate {
	out := v1beta1.AdvDeploymentAggregate{}
	var versions []string
	for i := range c.units {
		u := &c.units[i]
		s := u.status(stored)
		out.PodSets = append(out.PodSets, s)
		out.Desired, out.Available, out.UnAvailable = out.Desired+s.Desired, out.Available+s.Available, out.UnAvailable+s.UnAvailable
		if s.Version != "" {
			versions = append(versions, strings.Split(s.Version, "/")...)
		}
	}
	slices.Sort(versions)
	out.Version = strings.Join(slices.Compact(versions), "/")
	for _, child := range c.ours() {
		out.OwnerResource = append(out.OwnerResource, string(child.Kind)+"/"+child.Name)
	}
	out.OwnerResource = append(out.OwnerResource, c.ownReleases()...)
	return out
}

// status of one podSet.
func (u *unit) status(stored *v1beta1.AdvDeploymentStatus) v1beta1.PodSetStatus {
	n := u.numbers
	s := v1beta1.PodSetStatus{
		Name: u.PodSet.Name, Desired: n.desired, Available: min(n.available, n.desired), UnAvailable: max(0, n.desired-n.available),
		HaveDeploy: new(u.have != nil), Ready: new(n.ready), Update: new(n.updated), Current: new(n.current),
		Revision: u.Hash, Observed: u.upToDate && n.observed,
	}
	if s.Observed {
		s.Budget = u.placed.MaxUnavailable // that is in force
	}
	if u.child.Kind == TApp || u.child.Kind == StatefulSet {
		s.Ordinals = u.ordinals()
	}
	before := ""
	if i := slices.IndexFunc(stored.AggrStatus.PodSets, func(p v1beta1.PodSetStatus) bool { return p.Name == s.Name }); i >= 0 {
		before = stored.AggrStatus.PodSets[i].Version
	}
	s.Version = u.versions(before)
	if why := u.waitsFor(); why != "" && u.child.Kind != "" {
		s.Reason, s.Message = v1beta1.ReasonProgressing, message.Cut(why, maxPodSetMessage)
	}
	if h := u.hindrance; h.message != "" {
		s.Reason, s.Message = h.reason, message.Cut(h.message, maxPodSetMessage)
	}
	if u.verdict != nil {
		if !u.verdict.Progress.At.IsZero() {
			s.ProgressedAt = new(metav1.NewTime(u.verdict.Progress.At))
		}
		if u.verdict.Why != "" && s.Message == "" {
			s.Reason, s.Message = v1beta1.ReasonHeld, message.Cut(u.verdict.Why, maxPodSetMessage)
		}
	}
	return s
}

// ids of the instances.
func (u *unit) ids() podset.IDs { return podset.IDsOf(&u.PodSet.PodSetSpec, int64(u.Replicas)) }

// ordinals are the ids of the instances, as a status tells them.
func (u *unit) ordinals() string {
	if u.Replicas == 0 {
		return ""
	}
	return u.ids().String()
}

// versions that run: the unit's own version once an instance has it, and earlier ones while an
// instance may have them.
func (u *unit) versions(before string) string {
	n := u.numbers
	var out []string
	if n.updated > 0 {
		out = append(out, u.Version)
	}
	if n.current > n.updated {
		for _, v := range strings.Split(before, "/") {
			if v != "" && (v != u.Version || n.updated == 0) {
				out = append(out, v)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "/")
}
