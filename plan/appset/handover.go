package appset

import (
	"cmp"
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

// ids of a podSet in one cluster, the last one excluded. They are empty if first is not less.
type ids struct{ first, last int64 }

// anyIDs may be all that there are.
func anyIDs() ids { return ids{0, math.MaxInt64} }

func (a ids) and(b ids) ids { return ids{max(a.first, b.first), min(a.last, b.last)} }

func (a ids) count() int64 { return max(0, a.last-a.first) }

func (a ids) String() string {
	switch a.count() {
	case 0:
		return "none"
	case 1:
		return fmt.Sprint(a.first)
	}
	return fmt.Sprintf("%d-%d", a.first, a.last-1)
}

// idsOf a podSet with so many instances.
func idsOf(p *v1beta1.PodSetSpec, replicas int64) ids {
	first := int64(0)
	if p.Ordinals != nil {
		first = int64(p.Ordinals.Start)
	}
	return ids{first, first + replicas}
}

// shared are the names of podSets whose ids all clusters share.
func (c *computation) shared() map[string]bool {
	out := map[string]bool{}
	for i := range c.units {
		if c.units[i].PodSet.Ordinals != nil {
			out[c.units[i].PodSet.Name] = true
		}
	}
	return out
}

// held are the ids of a podSet that a cluster may have instances of.
func (c *computation) held(s *site, podSet string) ids {
	placed := s.placed(podSet)
	switch {
	case c.buried(s):
		return ids{}
	case !s.ours && s.remembered && !s.empty():
		return anyIDs()
	case !s.ours || placed == nil && !s.mayRun(podSet):
		return ids{}
	case placed == nil:
		return anyIDs()
	}
	switch seen := s.podSet(podSet); {
	case !s.isObserved() || seen == nil:
		return anyIDs()
	case seen.HaveDeploy != nil && !*seen.HaveDeploy: // nothing was made of it
		return ids{}
	case !seen.Observed || seen.Current == nil || *seen.Current > seen.Desired:
		return anyIDs() // those that it had before may be there yet
	}
	return idsOf(&placed.PodSetSpec, int64(placed.Replicas.IntValue()))
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

// handOver keeps ids from the part of a cluster that another one may have. What the cluster has
// already stays: it is too late for that.
func (c *computation) handOver(s *site, shared map[string]bool) {
	for i := range s.spec.Topology.PodSets {
		placed := &s.spec.Topology.PodSets[i]
		if !shared[placed.Name] {
			continue
		}
		want := idsOf(&placed.PodSetSpec, int64(placed.Replicas.IntValue()))
		own := ids{}
		if has := s.placed(placed.Name); has != nil {
			own = want.and(idsOf(&has.PodSetSpec, int64(has.Replicas.IntValue())))
		}
		now, from := want, []string(nil)
		for _, other := range c.sites {
			if other == s {
				continue
			}
			if taken := now.and(c.held(other, placed.Name)); taken.count() > 0 {
				if next := now.without(taken, own); next != now {
					now, from = next, append(from, other.title)
				}
			}
		}
		if now == want {
			continue
		}
		if now.count() == 0 {
			now = ids{want.first, want.first}
		}
		placed.Ordinals, placed.Replicas = &v1beta1.Ordinals{Start: int32(now.first)}, new(intstr.FromInt32(int32(now.count())))
		why := fmt.Sprintf("it is to have the ids %s, and has %s until cluster %s is certain to have let go of the others", want, now, strings.Join(from, ", "))
		s.waiting = append(s.waiting, podset.Note{Field: placed.Name, Why: why})
		c.wait("cluster %s, podSet %s: %s", s.title, placed.Name, why)
	}
}

// without is the longest range of ids that are not taken, or are a cluster's own.
func (a ids) without(taken, own ids) ids {
	if own.count() > 0 {
		// What is beside its own ids, up to those that are taken.
		out := own
		if before := (ids{a.first, own.first}); before.and(taken).count() == 0 {
			out.first = a.first
		} else {
			out.first = min(own.first, before.and(taken).last)
		}
		if after := (ids{own.last, a.last}); after.and(taken).count() == 0 {
			out.last = a.last
		} else {
			out.last = max(own.last, after.and(taken).first)
		}
		return out
	}
	before, after := ids{a.first, min(a.last, taken.first)}, ids{max(a.first, taken.last), a.last}
	return slices.MaxFunc([]ids{before, after}, func(a, b ids) int { return cmp.Compare(a.count(), b.count()) })
}
