package appset

import (
	"slices"
	"strings"

	"tkestack.io/tapp/plan/rollout"
)

// leave notes the units of a cluster that the spec has no more: their controllers go on with
// what they were granted until they are deleted. Those of a cluster that is dropped are
// charged as long as it is heard: to drop a silent one gives back what is reserved for it.
func (p *progression) leave(s *site) {
	going := s.ours && s.Part.DeletionTimestamp != nil
	if going || !s.listed && !s.certain() {
		return
	}
	placed := map[rollout.Key]bool{}
	if s.ours {
		for i := range s.Part.Spec.Topology.PodSets {
			key := keyOf(s.Name, s.Part.Spec.Topology.PodSets[i].Name)
			placed[key] = true
			if s.certain() {
				p.leavePlaced(s, key)
			}
		}
	}
	if p.in.Record == nil {
		return
	}
	for _, b := range p.in.Record.Bounds {
		if _, stays := p.at[b.Key]; b.Cluster == s.Name && b.Bound > 0 && !stays && !placed[b.Key] && s.mayRun(b.Name) {
			// No report says how many it has, or how far they are.
			p.in.Leaving = append(p.in.Leaving, rollout.Unit{Key: b.Key, Replicas: b.Bound, Sight: rollout.Sight{Unseen: true}})
		}
	}
}

// isLeftOver says whether a unit that the part does not have may be there since the part had it
// before. Of a cluster that is not certain, that is so of what the record charges.
func (p *progression) isLeftOver(s *site, unit rollout.Key) bool {
	if p.in.Record == nil || !s.ours || !s.mayRun(unit.Name) {
		return false
	}
	return s.certain() || slices.ContainsFunc(p.in.Record.Bounds, func(b rollout.Bound) bool { return b.Key == unit && b.Bound > 0 })
}

// leavePlaced notes a unit that the part has yet.
func (p *progression) leavePlaced(s *site, key rollout.Key) {
	has, readable := p.has[key]
	if _, stays := p.at[key]; stays || !readable {
		return
	}
	u := rollout.Unit{Key: key, Replicas: has.Replicas}
	u.Has, u.Version = has.Hash, s.Part.ResourceVersion
	p.see(s, &u)
	p.in.Leaving = append(p.in.Leaving, u)
}

// mayRun says whether a podSet that the part has not any more may have instances yet. A report
// about the part as it is names all that was made of it, what is left over among that.
func (s *site) mayRun(podSet string) bool {
	switch {
	case s.empty():
		return false
	case !s.certain() || !s.isObserved():
		return true
	}
	return slices.ContainsFunc(s.Part.Status.AggrStatus.OwnerResource, func(resource string) bool {
		kind, name, _ := strings.Cut(resource, "/")
		return name == podSet && kind != "Service" // which is the AppSet's
	})
}
