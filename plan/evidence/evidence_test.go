package evidence

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLost: what a node has to show for it to count as lost, and when to look again.
func TestLost(t *testing.T) {
	now, after := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 5*time.Minute
	for name, c := range map[string]struct {
		node  Node
		words string
		again time.Duration
	}{
		"gone":            {Node{}, "node a does not exist any more", 0},
		"out of service":  {Node{Exists: true, OutOfService: true}, "node a is tainted node.kubernetes.io/out-of-service", 0},
		"silent for long": {Node{Exists: true, NotReadySince: now.Add(-after)}, "node a has not been ready for 5m0s", 0},
		"almost so":       {Node{Exists: true, NotReadySince: now.Add(time.Second - after)}, "", time.Second},
		"for a while":     {Node{Exists: true, NotReadySince: now.Add(-time.Minute)}, "", Interval},
		"well":            {Node{Exists: true}, "", Interval},
	} {
		if words, again := c.node.Lost("a", now, after); words != c.words || again != c.again {
			t.Errorf("%s: %q, again after %s", name, words, again)
		}
	}
}

// TestTold: a condition tells of nodes while it is True, and of no other node whose name
// begins alike.
func TestTold(t *testing.T) {
	conditions := []metav1.Condition{{Type: "Is", Status: metav1.ConditionTrue, Message: "node a1 is lost; node b is, too"}, {Type: "Was", Status: metav1.ConditionFalse, Message: "node c was lost"}}
	told := Told(conditions, "Is")
	if !slices.Equal(told, []string{"node a1 is lost", "node b is, too"}) || Told(conditions, "Was") != nil || Told(conditions, "None") != nil {
		t.Errorf("%q", told)
	}
	if got := Order(slices.Values([]string{"a", "a1", "b", "c", "d"}), told, "c"); !slices.Equal(got, []string{"a1", "b", "d", "a", "c"}) {
		t.Errorf("%q", got)
	}
}

// TestHeld: what is told of nodes is found again, by the whole name of a node.
func TestHeld(t *testing.T) {
	var h Held
	if why := h.Why(nil); why != nil || Holds(why, "a") != "" {
		t.Errorf("nobody waits: %q", why)
	}
	h.Add("node b is lost", 1)
	h.Add("node a1 does not exist any more", 0)
	h.Add("node b is lost", 3)
	why := h.Why(func(ids []int) string { return fmt.Sprint(ids) })
	if want := []string{"node a1 does not exist any more ([0])", "node b is lost ([1 3])"}; len(why) != 3 || !slices.Equal(why[1:], want) {
		t.Errorf("%q", why)
	}
	for node, want := range map[string]string{"a": "", "a1": "node a1 does not exist any more", "b": "node b is lost", "c": ""} {
		if got := Holds(why, node); got != want {
			t.Errorf("node %s: %q", node, got)
		}
	}
}
