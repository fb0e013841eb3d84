package rollout

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestSilentInChange: units of silent clusters that have what nobody asks for any more are
// given no more than they were, though all of their instances are charged.
func TestSilentInChange(t *testing.T) {
	s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(3))}
	w := newWorld(t, s, "a/x=2", "b/x=2", "c/x=2").install().ask("v2").settle().expect(Staged, "a/x v2 2", "b/x v2 1")
	for _, name := range []string{"a", "b"} {
		w.cluster(name).Fresh, w.cluster(name).Ready = false, false
	}
	d := w.ask("v3").compute()
	for d.Store { // the rollout first, and then what it grants
		w.in.Record = d.Record
		d = w.compute()
	}
	for i, want := range []string{"v3 2 2", "v3 1 1", "v1 - -"} {
		v := &d.Units[i]
		if got := fmt.Sprintf("%s %s %s", v.Content, number(v.Grant), number(v.Ceiling)); got != want {
			t.Errorf("%s: %s, want %s", w.in.Units[i].Key, got, want)
		}
	}
}

// TestBudget: no more than the budget is granted, reserved before it is written.
func TestBudget(t *testing.T) {
	s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(3))}
	w := newWorld(t, s, "a/x=2", "b/x=4", "c/x=4").install().ask("v2").settle()
	w.expect(Staged, "a/x v2 2", "b/x v2 1")
	if w.last.Units[2].Why != "the budget of 3 instances is used up, by 3" || w.last.Charged != 3 {
		t.Errorf("%d, %s", w.last.Charged, w.last.Units[2].Why)
	}
	w.work("a/x").settle().expect(Staged, "c/x v2 2")
	w.work("b/x", "c/x").settle().expect(Done)
}

// TestBudgetRises: what others leave is given on, where it is worth a write.
func TestBudgetRises(t *testing.T) {
	s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(4))}
	w := newWorld(t, s, "a/x=3", "b/x=8").install().ask("v2").settle().expect(Staged, "a/x v2 3", "b/x v2 1")
	w.unit("b/x").Observed = true
	w.settle().expect(Staged)
	w.work("a/x").settle().expect(Staged, "b/x v2 4")
	w.in.Strategy.MaxUnavailable = new(intstr.FromInt32(2)) // it is lowered: so is the grant
	w.settle().expect(Staged, "b/x v2 2")
	w.unit("b/x").Observed = true
	w.in.Strategy.MaxUnavailable = nil
	w.settle().expect(Staged, "b/x v2 -")
	if w.in.Record.Budgeted {
		t.Error("bounds are recorded, and nothing is bounded")
	}
}

// TestHaltInBudget: a halt takes back what units in change may still take out of service.
func TestHaltInBudget(t *testing.T) {
	s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(3)), Deadline: time.Minute}
	w := newWorld(t, s, "a/x=2", "b/x=4").install().ask("v2").settle().expect(Staged, "a/x v2 2", "b/x v2 1")
	for _, name := range []string{"a/x", "b/x"} {
		w.unit(name).Observed = true
	}
	w.unit("a/x").Available = 0
	w.settle().later(time.Minute).settle().expect(Halted, "a/x v2 0", "b/x v2 0")
	w.later(time.Hour).settle().expect(Halted)
}

// TestComesBackEmpty: a podSet that was dropped in the midst of its change, and is asked for again
// without instances, is charged what it may have out of service until it is seen.
func TestComesBackEmpty(t *testing.T) {
	s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(1))}
	w := newWorld(t, s, "a/x=1", "b/x=2").install().ask("v2").settle().expect(Staged, "a/x v2 1")
	u := w.unit("a/x")
	u.Sight, u.Has, u.Grant, u.Ceiling, u.Replicas = Sight{Unseen: true}, "", nil, nil, 0
	if d := w.compute(); d.Charged != 1 || d.Units[1].Content != "v1" {
		t.Errorf("%d are charged, and b/x is given %s", d.Charged, d.Units[1].Content)
	}
}

// TestRepair: units with instances that failed by themselves are not locked out, and no
// others get what those use up.
func TestRepair(t *testing.T) {
	s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(1))}
	w := newWorld(t, s, "a/x=2", "b/x=3", "c/x=3").install()
	w.unit("b/x").Available, w.unit("c/x").Available = 0, 0
	w.ask("v2").settle().expect(Staged, "b/x v2 1")
	w.work("b/x").settle().expect(Staged, "c/x v2 1")
	w.work("c/x").settle().expect(Staged, "a/x v2 1")
}

// TestSilentBudget: a silent cluster is charged with all it has, or as it was seen last.
func TestSilentBudget(t *testing.T) {
	for last, want := range map[bool][]string{false: nil, true: {"b/x v2 1"}} {
		s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(1)), AsLastSeen: last}
		w := newWorld(t, s, "a/x=2", "b/x=3").install().ask("v2")
		w.cluster("a").Fresh, w.cluster("a").Ready = false, false
		w.settle().expect(Staged, want...)
		why := "the budget of 1 instances is used up, by 2: 2 are in clusters of which nothing current is known, and count as unavailable unless updateStrategy.unreachableCounts is AsLastSeen: a"
		if last {
			why = ""
		}
		if waits := w.last.Units[1].Why; w.last.Why != why || waits != why {
			t.Errorf("it says %q, and of b/x %q", w.last.Why, waits)
		}
		w.cluster("a").Fresh = true // and not ready: nothing more is granted there
		if w.settle(); last != (len(w.wrote) == 0) {
			t.Errorf("wrote %q", w.wrote)
		}
	}
}

// TestUnseenBudget: what a hub that was started anew has not seen of a silent cluster is
// charged as if all of it were out of service, or as it was recorded, and the record of it
// stays until it is seen.
func TestUnseenBudget(t *testing.T) {
	for last, want := range map[bool][]string{false: nil, true: {"b/x v2 1"}} {
		s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(3)), AsLastSeen: last}
		w := newWorld(t, s, "a/x=3", "b/x=3").install()
		w.in.Strategy.MaxUnavailable = new(intstr.FromInt32(2))
		w.ask("v2").settle().expect(Staged, "a/x v2 2")
		known := w.in.Record.boundOf(Key{"a", "x"})
		if known == nil || known.Bound != 2 {
			t.Fatalf("the record has %+v", w.in.Record.Bounds)
		}
		w.unit("a/x").Sight = Sight{Unseen: true}
		w.cluster("a").Fresh, w.cluster("a").Ready = false, false
		w.in.Strategy.MaxUnavailable = new(intstr.FromInt32(3))
		w.settle().expect(Staged, want...)
		if now := w.in.Record.boundOf(Key{"a", "x"}); now == nil || *now != *known {
			t.Errorf("the record had %+v, and has %+v", known, now)
		}
	}
}

// TestLeavingBudget: what a unit that the spec has no more was granted stays charged until it
// is followed, or the unit is gone.
func TestLeavingBudget(t *testing.T) {
	s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(2))}
	w := newWorld(t, s, "a/x=3", "b/x=3").install().ask("v2").settle().expect(Staged, "a/x v2 2")
	gone := w.in.Units[0]
	w.in.Units, w.in.Clusters = w.in.Units[1:], w.in.Clusters[1:]
	w.in.Leaving = []Unit{gone}
	left := &w.in.Leaving[0]
	w.ask("v3").settle().expect(Staged)
	if v := w.last.Units[0]; v.Why != "the budget of 2 instances is used up, by 2" || w.last.Charged != 2 {
		t.Errorf("%d, %s", w.last.Charged, v.Why)
	}
	left.Observed, left.Updated, left.Available = true, 2, 3 // one is left to do
	w.settle().expect(Staged, "b/x v3 1")
	left.Updated, left.Available = 3, 3
	w.unit("b/x").Observed = true
	w.settle().expect(Staged, "b/x v3 2")
	w.work().settle().expect(Done)
}

// TestRemaining: an instance counts as done with only where it has to be, whichever those are that
// are updated, available, or beyond the desired ones.
func TestRemaining(t *testing.T) {
	for _, c := range []struct{ desired, current, updated, available, want int32 }{
		{3, 3, 0, 3, 3},
		{3, 3, 1, 3, 2},
		{3, 3, 1, 2, 3}, // the updated one may be the one that is not available
		{3, 3, 2, 2, 2},
		{3, 3, 3, 3, 0},
		{3, 1, 1, 1, 3},
		{1, 2, 1, 2, 1}, // the updated one may be the one that goes
		{1, 2, 2, 2, 0},
		{1, 2, 2, 1, 1},
		{2, 4, 3, 4, 1},
		{0, 2, 0, 2, 0},
	} {
		if got := Remaining(c.desired, c.current, c.updated, c.available); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
