package appset

import (
	"slices"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// isMended says whether what a part is stalled for, by this reason, goes with the contents that
// the rollout under way replaces in their turn. Nobody has to help then. To blame are the podSets
// that tell of a fault, or else, if a child gave the reason, those that lack instances.
func (c *computation) isMended(s *site, reason string) bool {
	if !podset.IsFault(reason) || c.app.Spec.UpdateStrategy.Paused || !c.isIn(rollout.Staged, rollout.Waiting, rollout.Returning) {
		return false
	}
	var blamed, short []*v1beta1.PodSetStatus
	told := !slices.Contains([]string{v1beta1.ReasonInvalid, v1beta1.ReasonNotYet, v1beta1.ReasonRefused, v1beta1.ReasonResourceExists}, reason)
	for i := range s.Part.Status.AggrStatus.PodSets {
		p := &s.Part.Status.AggrStatus.PodSets[i]
		if podset.IsBroken(p) {
			blamed, told = append(blamed, p), told || p.Reason == reason
		}
		if p.Available < p.Desired {
			short = append(short, p)
		}
	}
	if len(blamed) == 0 {
		blamed = short
	}
	return told && len(blamed) > 0 && !slices.ContainsFunc(blamed, func(p *v1beta1.PodSetStatus) bool { return !c.isReplaced(s, p) })
}

// isReplaced says whether the rollout under way is to give a podSet another content than it has.
func (c *computation) isReplaced(s *site, p *v1beta1.PodSetStatus) bool {
	at, known := c.rolling.at[keyOf(s.Name, p.Name)]
	return known && p.Revision != "" && p.Revision != c.rolling.in.Units[at].Target && !c.rolling.decision.Units[at].Failed
}
