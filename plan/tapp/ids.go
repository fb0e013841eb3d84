package tapp

import (
	"fmt"
	"math"
	"strconv"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// MaxID is the highest instance id, as in a StatefulSet.
const MaxID = math.MaxInt32

// IDs are the instance ids that a spec asks for, in ascending order without a gap.
type IDs struct {
	// Start is the first id, where there is one.
	Start int
	// Count is how many there are.
	Count int
}

// IDsOf a spec: spec.replicas of them from spec.ordinals.start on. Absent means 1, and 0.
// Everything that asks which instances a TApp has asks here.
func IDsOf(spec *tappv1.TAppSpec) IDs {
	ids := IDs{Count: int(tappv1.DefaultReplicas)}
	if spec.Replicas != nil {
		ids.Count = int(*spec.Replicas)
	}
	if spec.Ordinals != nil {
		ids.Start = int(spec.Ordinals.Start)
	}
	return ids
}

// Has says whether the id is one of them.
func (i IDs) Has(id int) bool { return id >= i.Start && id < i.Start+i.Count }

// Last is the highest id; without any the one that the first would have.
func (i IDs) Last() int { return i.Start + max(0, i.Count-1) }

// All of them.
func (i IDs) All() []int {
	out := make([]int, max(0, i.Count))
	for n := range out {
		out[n] = i.Start + n
	}
	return out
}

// Why says in words from which fields they come.
func (i IDs) Why() string {
	replicas := "spec.replicas is " + strconv.Itoa(i.Count)
	if i.Start == 0 {
		return replicas
	}
	return fmt.Sprintf("spec.ordinals.start is %d and %s", i.Start, replicas)
}
