package appset

import (
	"slices"
	"strings"

	"tkestack.io/tapp/plan/rollout"
)

// leave notes the units of a cluster that are no longer in the spec. Their controllers go on
// with their grants until they are deleted, so the units are charged until then.
//
// | the topology | the cluster | charged |
// |---|---|---|
// | has the cluster | any | yes |
// | dropped the cluster | certain | yes |
// | dropped the cluster | not certain | no: dropping a silent cluster returns its reservation |
func (p *progression) leave(s *site) {
	going := s.ours && s.Part.DeletionTimestamp != nil
	if going || !s.listed && !s.certain() {
		return
	}
	placed := map[rollout.Key]bool{}
	if s.ours && s.certain() {
		for i := range s.Part.Spec.Topology.PodSets {
			key := keyOf(s.Name, s.Part.Spec.Topology.PodSets[i].Name)
			placed[key] = true
			p.leavePlaced(s, key)
		}
	}
	if p.in.Record == nil {
		return
	}
	for _, b := range p.in.Record.Bounds {
		if _, stays := p.at[b.Key]; b.Cluster == s.Name && b.Bound > 0 && !stays && !placed[b.Key] && s.mayRun(b.Name) {
			// No current report tells of its instances.
			p.in.Leaving = append(p.in.Leaving, rollout.Unit{Key: b.Key, Replicas: b.Bound, Sight: rollout.Sight{Unseen: true}})
		}
	}
}

// isLeftOver says whether a unit that is not in the part may still run, because an earlier
// version of the part had it. If the cluster is not certain, only units that the record
// charges count.
func (p *progression) isLeftOver(s *site, unit rollout.Key) bool {
	if p.in.Record == nil || !s.ours || !s.mayRun(unit.Name) {
		return false
	}
	return s.certain() || slices.ContainsFunc(p.in.Record.Bounds, func(b rollout.Bound) bool { return b.Key == unit && b.Bound > 0 })
}

// leavePlaced notes a unit that is in the part, and no longer in the spec.
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

// mayRun says whether a podSet that is no longer in the part may still have instances. The
// status of the part says so if it is certain and about the present spec: ownerResource lists
// all workloads, also those that are still to be deleted.
func (s *site) mayRun(podSet string) bool {
	switch {
	case s.empty():
		return false
	case !s.certain() || !s.isObserved():
		return true
	}
	return slices.ContainsFunc(s.Part.Status.AggrStatus.OwnerResource, func(resource string) bool {
		kind, name, _ := strings.Cut(resource, "/")
		return name == podSet && kind != "Service" // a Service belongs to the whole application
	})
}
