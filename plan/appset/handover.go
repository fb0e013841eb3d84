package appset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// Clusters that share the ids of a podSet name (see spec.ordinals) never run one id twice. An id
// that moves from one cluster to another is created where it comes to when it is certain that
// the other one has let go of it. A cluster that is silent keeps the ids that it was seen with.

// anyIDs may be all that there are.
func anyIDs() podset.IDs { return podset.IDs{First: 0, Last: math.MaxInt64} }

// idsOf a podSet as a part has it.
func idsOf(p *v1beta1.PlacedPodSet) podset.IDs {
	return podset.IDsOf(&p.PodSetSpec, int64(p.Replicas.IntValue()))
}

// held are the ids of a podSet that a cluster may have instances of.
func (c *computation) held(s *site, podSet string) podset.IDs {
	placed := s.placed(podSet)
	switch {
	case c.buried(s):
		return podset.IDs{}
	case !s.ours && s.remembered && !s.empty():
		return anyIDs()
	case !s.ours || placed == nil && !s.mayRun(podSet):
		return podset.IDs{}
	case placed == nil:
		return anyIDs()
	}
	switch seen := s.podSet(podSet); {
	case !s.isObserved() || seen == nil:
		return anyIDs()
	case seen.HaveDeploy != nil && !*seen.HaveDeploy: // nothing was made of it
		return podset.IDs{}
	case !seen.Observed || seen.Current == nil || *seen.Current > seen.Desired:
		return anyIDs() // those that it had before may be there yet
	}
	return idsOf(placed)
}

// waits says whether podSets of the part wait for ids.
func (s *site) waits() bool { return len(s.waiting) > 0 }

// placed is a podSet as the part has it; nil: it has none.
func (s *site) placed(podSet string) *v1beta1.PlacedPodSet {
	if !s.ours {
		return nil
	}
	all := s.Part.Spec.Topology.PodSets
	if i := slices.IndexFunc(all, func(p v1beta1.PlacedPodSet) bool { return p.Name == podSet }); i >= 0 {
		return &all[i]
	}
	return nil
}

// holders are the ids of a podSet that each cluster may have, in the order of the sites.
type holders map[string][]podset.IDs

// of a podSet.
func (h holders) of(c *computation, podSet string) []podset.IDs {
	if h[podSet] == nil {
		for _, s := range c.sites {
			h[podSet] = append(h[podSet], c.held(s, podSet))
		}
	}
	return h[podSet]
}

// handOver keeps ids from the part of a cluster that another one may have. What the cluster has
// already stays: it is too late for that.
func (c *computation) handOver(s *site, shared map[string]bool, held holders) {
	for i := range s.spec.Topology.PodSets {
		placed := &s.spec.Topology.PodSets[i]
		if !shared[placed.Name] {
			continue
		}
		want := idsOf(placed)
		own := podset.IDs{}
		if has := s.placed(placed.Name); has != nil {
			own = want.And(idsOf(has))
		}
		if own == want { // none comes
			continue
		}
		now, from := want, []string(nil)
		for k, theirs := range held.of(c, placed.Name) {
			other := c.sites[k]
			if other == s {
				continue
			}
			if taken := now.And(theirs); taken.Count() > 0 {
				if next := without(now, taken, own); next != now {
					now, from = next, append(from, other.title)
				}
			}
		}
		if now == want {
			continue
		}
		if now.Count() == 0 {
			now = podset.IDs{First: want.First, Last: want.First}
		}
		placed.Ordinals, placed.Replicas = &v1beta1.Ordinals{Start: int32(now.First)}, new(intstr.FromInt32(int32(now.Count())))
		why := fmt.Sprintf("it is to have the ids %s, and has %s until cluster %s is certain to have let go of the others", want, now, strings.Join(from, ", "))
		s.waiting = append(s.waiting, podset.Note{Field: placed.Name, Why: why})
		c.wait("cluster %s, podSet %s: %s", s.title, placed.Name, why)
	}
}

// without is the longest range of ids that are not taken, or are a cluster's own.
func without(all, taken, own podset.IDs) podset.IDs {
	if own.Count() > 0 {
		// What is beside its own ids, up to those that are taken.
		out := own
		if before := (podset.IDs{First: all.First, Last: own.First}).And(taken); before.Count() == 0 {
			out.First = all.First
		} else {
			out.First = min(own.First, before.Last)
		}
		if after := (podset.IDs{First: own.Last, Last: all.Last}).And(taken); after.Count() == 0 {
			out.Last = all.Last
		} else {
			out.Last = max(own.Last, after.First)
		}
		return out
	}
	before, after := podset.IDs{First: all.First, Last: min(all.Last, taken.First)}, podset.IDs{First: max(all.First, taken.Last), Last: all.Last}
	if after.Count() > before.Count() {
		return after
	}
	return before
}
