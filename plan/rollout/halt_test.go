package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestHalt: what fails stops where it is, is not spread, and returns or is tried again.
func TestHalt(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours}, Deadline: time.Minute}
	fail := func(w *world) *world {
		w.install().ask("v2").settle().expect(Staged, "a/canary v2 -")
		w.in.Units[0].Observed, w.in.Units[0].Available = true, 0
		w.settle().later(time.Minute).settle()
		return w
	}
	w := fail(newWorld(t, s, fleetOf(s)...)).expect(Halted, "a/canary v2 0")
	const why = "1 of 2 clusters of stage canary failed, and no more than 0 may: a/canary: it made no progress for 1m0s: 0 of 1 instances have the content, and 0 are available"
	if w.last.Why != why {
		t.Errorf("%s", w.last.Why)
	}
	w.later(time.Hour).settle().expect(Halted)
	w.in.Retry = w.in.Record.ID
	w.settle().expect(Staged, "a/canary v2 -")
	w.later(time.Minute).settle().expect(Halted, "a/canary v2 0")
	w.settle().expect(Halted)
	w.in.Retry += "/2"
	w.settle().expect(Staged, "a/canary v2 -")
	w.later(time.Minute).settle().expect(Halted, "a/canary v2 0")
	w.in.Units[0].Updated, w.in.Units[0].Available, w.in.Units[0].Observed = 1, 1, true
	w.settle().expect(Staged, "a/canary v2 -", "b/canary v2 -")

	w = fail(newWorld(t, s, fleetOf(s)...)).expect(Halted, "a/canary v2 0")
	w.ask("v1").settle().expect(Returning, "a/canary v1 -")
	w.work().settle().expect(Done)

	s.Rollback = true
	w = fail(newWorld(t, s, fleetOf(s)...)).expect(RollingBack, "a/canary v1 -")
	w.work().settle().expect(RolledBack)
	w.later(time.Hour).settle().expect(RolledBack)
	w.in.Retry = w.in.Record.ID
	w.settle().expect(Staged, "a/canary v2 -")
}

// TestBroken: a unit whose own fault is told is not done, whatever its numbers say. One whose
// neighbour has it is.
func TestBroken(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours}}
	for broken, want := range map[bool]State{true: Halted, false: Staged} {
		w := newWorld(t, s, "a/canary=1", "a/blue=2").install().ask("v2").settle().expect(Staged, "a/canary v2 -")
		w.work("a/canary")
		w.in.Units[0].Stalled, w.in.Units[0].Broken = "a hook failed", broken
		w.in.Units[0].Observed = !broken // what is not carried out whole is not followed
		w.settle()
		if w.last.State != want {
			t.Errorf("broken %t: %s, want %s", broken, w.last.State, want)
		}
	}
}

// TestRetryStalled: a unit that is stalled is tried again as any other: what is told of it is about
// the try before, until its controller has seen the new one.
func TestRetryStalled(t *testing.T) {
	w := newWorld(t, Strategy{Staging: Staging{Order: colours}}, "a/canary=1", "a/blue=2").install().ask("v2").settle().expect(Staged, "a/canary v2 -")
	w.in.Units[0].Observed, w.in.Units[0].Stalled = true, "the cluster refuses it"
	w.settle().expect(Halted, "a/canary v2 0")
	w.in.Units[0].Observed = true
	w.settle().expect(Halted)
	w.in.Retry = w.in.Record.ID
	w.settle().expect(Staged, "a/canary v2 -")
	w.work("a/canary").in.Units[0].Available = 0
	w.settle().expect(Halted, "a/canary v2 0")
}

// TestUnitsThatReturn: a stage says how many of its units go back, also where it has no work and while
// nothing starts.
func TestUnitsThatReturn(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours}, Deadline: time.Minute}
	returning := func(w *world, want ...int) {
		t.Helper()
		var got []int
		for k := range w.last.Stages {
			got = append(got, w.last.Stages[k].Returning)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: returning %v, want %v", w.last.State, got, want)
		}
	}
	w := newWorld(t, s, fleetOf(s)...).settle()
	returning(w, 0, 0, 0) // it is installed
	w.work().settle()
	w.wrote = nil
	w.ask("v2").settle().expect(Staged, "a/canary v2 -")
	returning(w, 0, 0, 0)

	w.in.Strategy.Paused = true
	w.ask("v1").settle().expect(Returning, "a/canary v1 -") // its own controller is told that nothing starts
	returning(w, 1, 0, 0)
	w.in.Strategy.Paused = false
	w.settle().expect(Returning)
	returning(w, 1, 0, 0)
	w.work().settle().expect(Done)

	// Another content for others, while the canary returns.
	w.ask("v2").settle().expect(Staged, "a/canary v2 -")
	w.ask("v1").ask("v3", "green").settle().expect(Staged, "a/canary v1 -", "a/green v3 -")
	returning(w, 1, 0, 0)
	w.unit("a/blue").Available = 0 // it is not well, and has nowhere to return to
	w.settle()
	returning(w, 1, 0, 0)

	s.Rollback = true
	w = newWorld(t, s, fleetOf(s)...).install().ask("v2").settle().expect(Staged, "a/canary v2 -")
	w.later(time.Minute).settle().expect(RollingBack, "a/canary v1 -")
	returning(w, 1, 0, 0)
	w.work().settle().expect(RolledBack)
	returning(w, 0, 0, 0)
}

// TestBrokenBefore: a gate that a human opened stays shut while what is before it is not well.
func TestBrokenBefore(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours, Confirm: true}, Concurrent: new(intstr.FromInt32(2))}
	w := newWorld(t, s, fleetOf(s)...).install().ask("v2").settle().work().settle()
	w.confirm().settle().work().settle()
	w.wrote = nil
	w.settle().expect(Waiting)
	w.unit("a/canary").Available = 0
	w.confirm().settle().expect(Staged)
	if w.last.Why != "stage blue is done, and one before it is not well any more" {
		t.Errorf("%s", w.last.Why)
	}
	w.work().settle().expect(Staged, "a/green v2 -", "b/green v2 -")
}

// TestStalled: what cannot go on without help fails at once.
func TestStalled(t *testing.T) {
	w := newWorld(t, Strategy{Deadline: time.Hour}, "a/x=1", "b/x=1").install().ask("v2").settle().expect(Staged, "a/x v2 -")
	w.in.Units[0].Observed, w.in.Units[0].Stalled = true, "no such image"
	w.settle().expect(Halted, "a/x v2 0")
}

// TestFailuresAreBounded: what many units say of their failures, and at length, can be stored.
func TestFailuresAreBounded(t *testing.T) {
	for units, most := range map[int]int{1: mostWhy, 1000: leastWhy} {
		var names []string
		for i := range units {
			names = append(names, fmt.Sprintf("a/x%d=1", i))
		}
		w := newWorld(t, Strategy{Deadline: time.Hour}, names...).install().ask("v2").settle()
		w.wrote = nil
		for i := range w.in.Units {
			w.in.Units[i].Observed, w.in.Units[i].Stalled = true, strings.Repeat("no such image, ", 2000)
		}
		w.settle()
		text, _ := json.Marshal(w.in.Record)
		if w.last.State != Halted || len(w.in.Record.Failed) != units || len(text) > 128<<10 || len(w.last.Why) > 512 {
			t.Errorf("%d units: %s, %d failed, a record of %d bytes, %s", units, w.last.State, len(w.in.Record.Failed), len(text), w.last.Why)
		}
		if why := w.in.Record.Failed[0].Why; len(why) > most || !strings.HasPrefix(why, "no such image, ") {
			t.Errorf("%d units: %s", units, why)
		}
	}
}
