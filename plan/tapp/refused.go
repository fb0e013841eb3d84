package tapp

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/refusal"
)

// tellRefused has the instances say what was refused of that which they want still, and
// returns that.
func tellRefused(s *spec, in *Input, all []*instance) refusal.Set {
	known, out := in.Refused, refusal.Set{}
	if known == nil {
		known = refusal.Stored(s.stored.Status.Conditions)
	}
	for k, r := range known {
		i := find(all, k.ID)
		tried := k.Op == refusal.TryUpdate || k.Op == refusal.TryCreate
		if i != nil && (tried && s.isTried(i, in.Policy.Try) || !tried && s.wants(i, refusal.ReasonOf(k.Op))) {
			out[k] = r
		}
	}
	for id, k := range out.PerInstance() {
		find(all, id).wait(refusal.ReasonOf(k.Op), k.Why(out[k]))
	}
	for k, words := range s.triedInVain { // who waits for that says it already
		if was, told := known[k]; told {
			out[k] = was
		}
		out.Note(k, words, in.Now)
	}
	return out
}

// find the instance of an id among those in ascending order, or nil.
func find(all []*instance, id int) *instance {
	at, found := slices.BinarySearchFunc(all, id, func(i *instance, id int) int { return i.id - id })
	if !found {
		return nil
	}
	return all[at]
}

// isTried says whether the API server is asked again, for the instance or one that is alike. A plan that
// asks nothing itself, as a preview, has it that whoever does asks for each update that is left.
func (s *spec) isTried(i *instance, asks bool) bool {
	return i.reason == reasonTurn || !asks && !s.tapp.Spec.Paused && s.intentOf(i).kind.disrupts() || slices.ContainsFunc(i.actions, func(a Action) bool { return a.Op == OpTry })
}

// wants says whether something is to be done for the instance that a reason of refusals is
// about: now, or when its turn has come.
func (s *spec) wants(i *instance, reason string) bool {
	for a := range i.actions {
		for _, op := range refusal.Parts(string(i.actions[a].Op)) {
			if refusal.ReasonOf(op) == reason {
				return true
			}
		}
	}
	if s.tapp.DeletionTimestamp != nil || i.reason == reasonPaused || i.reason == reasonNotFinished {
		return false
	}
	switch s.intentOf(i).kind {
	case create:
		return reason == refusal.FailedCreate
	case replace:
		return reason == refusal.FailedCreate || reason == refusal.FailedDelete
	case scaleDown, stop, recreate:
		return reason == refusal.FailedDelete
	case stamp, relabel, updateInPlace, resize, resizeAndRestart:
		return reason == refusal.FailedUpdate
	}
	return false
}

// createsRefused says whether the status, as stored, tells of creations that are refused.
func (s *spec) createsRefused() bool {
	c := meta.FindStatusCondition(s.stored.Status.Conditions, tappv1.ConditionReplicaFailure)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == refusal.FailedCreate
}

// concludeRefused sets the condition ReplicaFailure.
func (m *summary) concludeRefused(s *tappv1.TAppStatus) {
	was := meta.FindStatusCondition(s.Conditions, tappv1.ConditionReplicaFailure)
	switch reason, text := m.refused.Told(); {
	case reason != "" && m.untried: // others that it counts are not known
		m.set(s, tappv1.ConditionReplicaFailure, true, was.Reason, was.Message)
	case reason != "":
		m.set(s, tappv1.ConditionReplicaFailure, true, reason, text)
	case was != nil && was.Status == metav1.ConditionTrue:
		m.set(s, tappv1.ConditionReplicaFailure, false, "NotRefused", "nothing that is wanted is refused any more")
	}
}
