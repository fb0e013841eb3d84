package evidence

import (
	"maps"
	"slices"
	"strings"
)

// Held are the ids of instances that wait because their node is lost, ascending, by the
// evidence of that.
type Held map[string][]int

// What holds follows the evidence in a condition.
const before, after = " (", ")"

// Add an instance.
func (h *Held) Add(words string, id int) {
	if *h == nil {
		*h = Held{}
	}
	(*h)[words] = append((*h)[words], id)
}

// Why tells in parts of a message what ends the waiting, and what of each node is known and
// which instances wait for it, as name writes them. It is nil if none does.
func (h Held) Why(name func(ids []int) string) []string {
	if len(h) == 0 {
		return nil
	}
	why := []string{"instances wait until their lost nodes are back, are tainted node.kubernetes.io/out-of-service because they are off, or spec.forceDeletePod is true"}
	for _, words := range slices.Sorted(maps.Keys(h)) {
		why = append(why, words+before+name(h[words])+after)
	}
	return why
}

// Holds is the evidence of a node in what a condition told by Why; empty: none.
func Holds(told []string, node string) string {
	for _, part := range told {
		if words, _, found := strings.Cut(part, before); found && strings.HasPrefix(words, of(node)) {
			return words
		}
	}
	return ""
}
