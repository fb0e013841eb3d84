package podset

import (
	"fmt"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// IDs of the instances of a podSet in one cluster: from First on, and before Last. If First is not
// less than Last, there are none.
type IDs struct{ First, Last int64 }

// IDsOf a podSet with so many instances: from ordinals.start on, or from 0.
func IDsOf(p *v1beta1.PodSetSpec, instances int64) IDs {
	first := int64(0)
	if p.Ordinals != nil {
		first = int64(p.Ordinals.Start)
	}
	return IDs{first, first + instances}
}

// And are the ids that both have.
func (i IDs) And(other IDs) IDs { return IDs{max(i.First, other.First), min(i.Last, other.Last)} }

// Count is how many there are.
func (i IDs) Count() int64 { return max(0, i.Last-i.First) }

// String is such as 3-9, or 3; none, if there are none.
func (i IDs) String() string {
	switch i.Count() {
	case 0:
		return "none"
	case 1:
		return fmt.Sprint(i.First)
	}
	return fmt.Sprintf("%d-%d", i.First, i.Last-1)
}

// SharedIDs are the names of podSets whose ids all clusters share: that is so as soon as one of
// the name says where its ids begin. Without that each cluster has its own.
func SharedIDs(units []Unit) map[string]bool {
	out := map[string]bool{}
	for i := range units {
		if units[i].PodSet.Ordinals != nil {
			out[units[i].PodSet.Name] = true
		}
	}
	return out
}
