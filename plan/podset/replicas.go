package podset

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// share is what one podSet asks for.
type share struct {
	kind  shareKind
	value int64 // instances, or percent
	path  string
}

type shareKind int

const (
	number shareKind = iota
	percentage
	remainder
)

// replicasOf gives each podSet its instances, in the order of the topology.
//
// | replicas of the podSet | instances |
// |---|---|
// | a number | that |
// | a percentage | its part of spec.replicas; the parts of all percentages add up to their sum |
// | none | an even part of what the others leave of spec.replicas, the first ones first |
//
// Scaling up never takes an instance from a podSet with a percentage: the parts are by
// the method of Sainte-Laguë, which is monotone.
func replicasOf(a *v1beta1.AppSet, path pathOf) ([]int32, []Note, []Problem) {
	shares, problems := sharesOf(a, path)
	if len(problems) > 0 {
		return nil, nil, problems
	}
	out := make([]int32, len(shares))
	var numbers, percents int64
	var weights []int64
	rest := 0
	for i, s := range shares {
		weights = append(weights, 0)
		switch s.kind {
		case number:
			out[i], numbers = int32(s.value), numbers+s.value
		case percentage:
			weights[i], percents = s.value, percents+s.value
		case remainder:
			rest++
		}
	}
	total := int64(0)
	if a.Spec.Replicas != nil {
		total = int64(*a.Spec.Replicas)
	}
	seats := (total*percents + 50) / 100 // rounded
	if asked := numbers + seats; asked > math.MaxInt32 {
		return nil, nil, []Problem{{"spec.clusterTopology.clusters", fmt.Sprintf("the podSets ask for %d instances, and no more than %d can be counted", asked, math.MaxInt32)}}
	}
	apportion(out, weights, seats)
	left := max(0, total-numbers-seats)
	for i, s := range shares {
		if s.kind == remainder {
			out[i] = int32((left + int64(rest) - 1) / int64(rest))
			left, rest = left-int64(out[i]), rest-1
		}
	}
	return out, notesOn(a, shares, out, numbers), nil
}

func sharesOf(a *v1beta1.AppSet, at pathOf) (shares []share, problems []Problem) {
	for c := range a.Spec.ClusterTopology.Clusters {
		cluster := &a.Spec.ClusterTopology.Clusters[c]
		for p := range cluster.PodSets {
			podSet := &cluster.PodSets[p]
			path := at(cluster.Name, podSet.Name) + ".replicas"
			s, why := readShare(podSet.Replicas)
			if why == "" && s.kind != number && a.Spec.Replicas == nil {
				why = "it is a part of spec.replicas, which is absent: give that, or a number here"
			}
			if why != "" {
				problems = append(problems, Problem{path, why})
			}
			s.path = path
			shares = append(shares, s)
		}
	}
	return shares, problems
}

// readShare reads replicas of a podSet. Why it cannot be read; empty: it can.
func readShare(replicas *intstr.IntOrString) (s share, why string) {
	switch {
	case replicas == nil:
		return share{kind: remainder}, ""
	case replicas.Type == intstr.Int && replicas.IntVal < 0:
		return share{}, fmt.Sprintf("%d is negative", replicas.IntVal)
	case replicas.Type == intstr.Int:
		return share{kind: number, value: int64(replicas.IntVal)}, ""
	}
	digits, ok := strings.CutSuffix(replicas.StrVal, "%")
	percent, err := strconv.Atoi(digits)
	if !ok || err != nil || strconv.Itoa(percent) != digits || percent < 0 || percent > 100 {
		return share{}, fmt.Sprintf("%q is no number, and no percentage from 0%% to 100%%", replicas.StrVal)
	}
	return share{kind: percentage, value: int64(percent)}, ""
}

// apportion seats by weights into out, by the method of Sainte-Laguë; of equals the
// first. Others in out stay.
//
// The method gives one seat after the other to the largest w/(2g+1), g being what it has
// already. The quotas, rounded half up, are what it gives for some number of seats that
// is near: from there it goes on, or back.
func apportion(out []int32, weights []int64, seats int64) {
	var sum int64
	for _, w := range weights {
		sum += w
	}
	if sum == 0 {
		return
	}
	given, left := make([]int64, len(weights)), seats
	for i, w := range weights {
		given[i] = (2*seats*w + sum) / (2 * sum)
		left -= given[i]
	}
	for ; left > 0; left-- {
		given[next(weights, func(i, best int) bool { return weights[i]*(2*given[best]+1) > weights[best]*(2*given[i]+1) })]++
	}
	for ; left < 0; left++ {
		given[next(weights, func(i, best int) bool {
			return given[i] > 0 && (given[best] == 0 || weights[i]*(2*given[best]-1) <= weights[best]*(2*given[i]-1))
		})]--
	}
	for i, w := range weights {
		if w > 0 {
			out[i] = int32(given[i])
		}
	}
}

// next is the index with a weight that goes before all others.
func next(weights []int64, before func(i, best int) bool) int {
	best := -1
	for i, w := range weights {
		if w > 0 && (best < 0 || before(i, best)) {
			best = i
		}
	}
	return best
}

// notesOn what replicas seem to say, and do not.
func notesOn(a *v1beta1.AppSet, shares []share, out []int32, numbers int64) (notes []Note) {
	all := true
	for i, s := range shares {
		all = all && s.kind == number
		if s.kind == percentage && s.value > 0 && out[i] == 0 {
			notes = append(notes, Note{s.path, fmt.Sprintf("%d%% of %d instances is none", s.value, *a.Spec.Replicas)})
		}
	}
	if len(shares) == 0 && a.Spec.Replicas != nil && *a.Spec.Replicas > 0 {
		notes = append(notes, Note{"spec.replicas", fmt.Sprintf("there is no podSet that has instances, so that %d has no effect", *a.Spec.Replicas)})
	}
	if all && len(shares) > 0 && a.Spec.Replicas != nil && int64(*a.Spec.Replicas) != numbers {
		notes = append(notes, Note{"spec.replicas", fmt.Sprintf("the podSets have %d instances of their own, so that %d has no effect", numbers, *a.Spec.Replicas)})
	}
	return notes
}
