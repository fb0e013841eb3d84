// Package evidence judges whether a node is lost, by what a live read said of it and by
// what conditions told of it before. Evidence is in words: "node a does not exist any more".
package evidence

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Interval is how often a node is read again while it looks alive.
	Interval = 15 * time.Second
	// Separator parts what a condition tells of nodes.
	Separator = "; "
)

// Node is what a live read said of a node.
type Node struct {
	// Exists is false when the node object is gone.
	Exists bool
	// OutOfService is true when the node carries the taint
	// node.kubernetes.io/out-of-service (KEP-2268).
	OutOfService bool
	// NotReadySince is when the node's Ready condition left True; zero while it is
	// ready.
	NotReadySince time.Time
}

// Lost returns the evidence that the node of this name is lost, or no words and when to
// look again. It has to be not ready for a while to count as lost.
func (n Node) Lost(name string, now time.Time, after time.Duration) (words string, again time.Duration) {
	switch gone := now.Sub(n.NotReadySince); {
	case !n.Exists:
		return of(name) + "does not exist any more", 0
	case n.OutOfService:
		return of(name) + "is tainted node.kubernetes.io/out-of-service", 0
	case n.NotReadySince.IsZero():
		return "", Interval
	case gone < after:
		return "", min(after-gone, Interval)
	}
	return fmt.Sprintf("%shas not been ready for %s", of(name), after), 0
}

// of is how all evidence of a node begins.
func of(node string) string { return "node " + node + " " }

// Told is the evidence that a condition has; nil unless it is True.
func Told(conditions []metav1.Condition, kind string) []string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return strings.Split(c.Message, Separator)
}

// Order sorts nodes that are to be read, the most important ones first: those that are told
// of, whose pods go next, and then those after the last one that was read. However few are
// read at a time, each has its turn.
func Order(nodes iter.Seq[string], told []string, after string) []string {
	rank := func(node string) int {
		switch {
		case slices.ContainsFunc(told, func(words string) bool { return strings.HasPrefix(words, of(node)) }):
			return 0
		case node > after:
			return 1
		}
		return 2
	}
	return slices.SortedFunc(nodes, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
}
