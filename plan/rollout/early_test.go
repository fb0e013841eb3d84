package rollout

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// givenUp is a fleet with a canary in a and a budget of 2, in which an installation was given up for v2,
// which took two instances of b out of service and does not run there. Now v3 is asked for.
func givenUp(t *testing.T, replicas int32) *world {
	s := Strategy{Staging: Staging{Canaries: []string{"a"}}, MaxUnavailable: new(intstr.FromInt32(2)), Deadline: time.Minute}
	w := newWorld(t, s, "a/x=3", "b/x=2")
	w.recovers = true
	w.unit("b/x").Replicas = replicas
	w.settle().expect(Installing, "a/x v1 -", "b/x v1 -")
	for _, name := range []string{"a/x", "b/x"} {
		u := w.unit(name)
		u.Observed, u.Desired, u.Current, u.Updated, u.Available = true, u.Replicas, u.Replicas, u.Replicas, u.Replicas
	}
	w.unit("a/x").Available = 0
	w.settle().ask("v2").settle().expect(Staged, "a/x v2 2")
	w.work("a/x").settle().expect(Staged, "b/x v2 2")
	b := w.unit("b/x")
	b.Observed, b.Updated, b.Available = true, 2, replicas-2
	return w.ask("v3")
}

// TestGoesEarly: where what is stable is unproven, instances that were taken out of service and do not
// come back are not left waiting for a stage that waits for their budget.
func TestGoesEarly(t *testing.T) {
	waits := func(t *testing.T) *world {
		w := givenUp(t, 2).settle().expect(Staged)
		if v := w.last.Units[0]; v.Why != "the budget of 2 instances is used up, by 2" {
			t.Fatalf("a/x waits: %q", v.Why)
		}
		if v := w.last.Units[1]; v.Content != "v2" || v.Why != "it waits for stage rest" || w.last.Wait != time.Minute {
			t.Fatalf("b/x is decided to be %+v", v)
		}
		return w
	}
	t.Run("when its time is up", func(t *testing.T) {
		w := waits(t)
		w.later(59 * time.Second).settle().expect(Staged)
		w.later(time.Second).settle().expect(Staged, "b/x v3 2")
		if want := "b/x does not wait for stage rest: it holds the budget, and its instances do not come back without what is asked for"; w.last.Why != want {
			t.Errorf("it says %q, want %q", w.last.Why, want)
		}
		w.work("b/x").settle().expect(Staged, "a/x v3 2")
		w.work("a/x").settle().expect(Done)
		if r := w.in.Record; r.Holding != nil {
			t.Errorf("the record keeps %+v", r.Holding)
		}
	})
	t.Run("when its controller says so", func(t *testing.T) {
		w := waits(t)
		w.in.Strategy.Deadline = 0
		w.settle().later(time.Hour).settle().expect(Staged)
		w.unit("b/x").Stalled = "its image cannot be had"
		w.settle().expect(Staged, "b/x v3 2")
	})
	t.Run("it comes nearer", func(t *testing.T) {
		w := waits(t)
		w.unit("b/x").Available = 1
		w.later(59*time.Second).settle().expect(Staged, "a/x v3 1")
		w.later(59 * time.Second).unit("a/x").Updated = 1
		w.unit("a/x").Observed, w.unit("a/x").Available = true, 2
		w.settle().expect(Staged)
		w.later(time.Second).settle().expect(Staged, "b/x v3 1")
	})
	t.Run("it came back by itself", func(t *testing.T) {
		w := waits(t)
		w.unit("b/x").Available = 2
		w.settle().expect(Staged, "a/x v3 2")
		w.later(time.Second)
		if w.settle(); w.last.Units[1].Content != "v2" || w.in.Record.Holding != nil {
			t.Errorf("b/x does not wait: %+v", w.last.Units[1])
		}
	})
	t.Run("its cluster falls silent", func(t *testing.T) {
		w := waits(t)
		w.cluster("b").Fresh, w.cluster("b").Ready = false, false
		w.later(time.Hour).settle().expect(Staged)
	})
	t.Run("paused", func(t *testing.T) {
		w := waits(t)
		w.in.Strategy.Paused = true
		w.settle().later(time.Hour).settle().expect(Staged)
		w.in.Strategy.Paused = false
		w.settle().expect(Staged, "b/x v3 2")
	})
	t.Run("what is stable has run everywhere", func(t *testing.T) {
		w := waits(t)
		w.in.Record.Unproven = false
		w.settle().expect(Staged, "a/x v3 0", "b/x v1 2")
	})
}

// TestEarlyFails: what a unit is given before its turn has a time of its own, and halts the rollout when
// it fails. Another try goes on there.
func TestEarlyFails(t *testing.T) {
	w := givenUp(t, 2).settle().expect(Staged)
	w.later(time.Minute).settle().expect(Staged, "b/x v3 2")
	b := w.unit("b/x")
	b.Observed, b.Updated = true, 2
	w.settle().later(59 * time.Second).settle().expect(Staged)
	w.later(time.Second).settle().expect(Halted, "a/x v2 0", "b/x v3 0")
	b.Observed = true
	w.in.Retry = w.in.Record.ID
	w.settle().expect(Staged)
	if v := w.last.Units[1]; v.Content != "v3" || v.Why != "" {
		t.Errorf("b/x is decided to be %+v", v)
	}
	w.ask("v4").settle().expect(Staged)
	w.later(time.Minute).settle().expect(Staged, "b/x v4 2")
}

// TestEarlyHoldsNoMore: before its turn a unit is granted no more than it holds, though the budget has room.
func TestEarlyHoldsNoMore(t *testing.T) {
	w := givenUp(t, 3).settle().expect(Staged, "b/x v2 0")
	w.in.Strategy.MaxUnavailable = new(intstr.FromInt32(6))
	w.later(time.Minute).settle().expect(Staged, "a/x v3 3", "b/x v3 2")
	w.unit("b/x").Observed = true
	w.settle().expect(Staged)
}

// TestEarlyStops: a unit that is repaired before its turn stops as soon as it holds nothing.
func TestEarlyStops(t *testing.T) {
	w := givenUp(t, 3).settle().expect(Staged, "b/x v2 0")
	w.later(time.Minute).settle().expect(Staged, "b/x v3 2")
	b := w.unit("b/x")
	b.Observed, b.Updated, b.Available = true, 2, 3
	w.settle().expect(Staged, "a/x v3 1", "b/x v3 0")
	if v := w.last.Units[1]; v.Why != "it waits for stage rest" {
		t.Errorf("b/x: %q", v.Why)
	}
	b.Observed = true
	w.work("a/x").settle().expect(Staged, "b/x v3 1")
	w.work("b/x").settle().expect(Done)
}
