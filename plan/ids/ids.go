// Package ids knows the instance ids of a TApp: which ones a spec asks for, how they
// are written, and how people read many of them.
package ids

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Max is the highest instance id, as in a StatefulSet.
const Max = math.MaxInt32

// Range is the instance ids that a spec asks for, in ascending order without a gap.
type Range struct {
	// Start is the first id, where there is one.
	Start int
	// Count is how many there are.
	Count int
}

// Of a spec: spec.replicas of them from spec.ordinals.start on. Absent means 1, and 0.
// Everything that asks which instances a TApp has asks here.
func Of(spec *tappv1.TAppSpec) Range {
	ids := Range{Count: int(tappv1.DefaultReplicas)}
	if spec.Replicas != nil {
		ids.Count = int(*spec.Replicas)
	}
	if spec.Ordinals != nil {
		ids.Start = int(spec.Ordinals.Start)
	}
	return ids
}

// Has says whether the id is one of them.
func (i Range) Has(id int) bool { return id >= i.Start && id < i.Start+i.Count }

// Last is the highest id; without any the one that the first would have.
func (i Range) Last() int { return i.Start + max(0, i.Count-1) }

// All of them.
func (i Range) All() []int {
	out := make([]int, max(0, i.Count))
	for n := range out {
		out[n] = i.Start + n
	}
	return out
}

// Why says in words from which fields they come.
func (i Range) Why() string {
	replicas := "spec.replicas is " + strconv.Itoa(i.Count)
	if i.Start == 0 {
		return replicas
	}
	return fmt.Sprintf("spec.ordinals.start is %d and %s", i.Start, replicas)
}

// Parse reads a canonical instance id: "0", "1", "10", but not "01", "+1" or
// "-1".
func Parse(id string) (int, bool) {
	num, err := strconv.Atoi(id)
	if err != nil || num < 0 || strconv.Itoa(num) != id {
		return 0, false
	}
	return num, true
}

// InName finds the id in the name of what an instance has: <stem>-<id>. The stem of a pod
// is its TApp's name.
func InName(stem, name string) (int, bool) {
	id, ok := strings.CutPrefix(name, stem+"-")
	if !ok {
		return 0, false
	}
	return Parse(id)
}
