package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEmptied: a stage that has begun keeps its gate, and a rollout that halted stays so, also when
// what showed it is scaled down to 0 or removed.
func TestEmptied(t *testing.T) {
	scaled := func(w *world, group string) *world {
		for i := range w.in.Units {
			if u := &w.in.Units[i]; u.Group == group {
				u.Replicas, u.Desired, u.Current, u.Updated, u.Available = 0, 0, 0, 0, 0
			}
		}
		return w
	}
	removed := func(w *world, group string) *world {
		w.in.Units = slices.DeleteFunc(w.in.Units, func(u Unit) bool { return u.Group == group })
		return w.ask("v2")
	}
	for name, empty := range map[string]func(*world, string) *world{"scaled down": scaled, "removed": removed} {
		t.Run(name, func(t *testing.T) {
			s := Strategy{Staging: Staging{Order: colours, Confirm: true}, Deadline: time.Minute}
			waiting := func() *world {
				w := newWorld(t, s, "a/canary=1", "a/blue=2", "a/green=2").install().ask("v2").settle().expect(Staged, "a/canary v2 -")
				return w.work().settle().expect(Waiting)
			}
			w := waiting()
			empty(w, "canary").settle().expect(Waiting)
			w.confirm().settle().expect(Staged, "a/blue v2 -")

			w = waiting()
			w.confirm().settle().expect(Staged, "a/blue v2 -")
			w.work().settle().expect(Waiting)
			empty(w, "canary").settle().expect(Waiting) // it has passed

			s.Confirm = false
			w = newWorld(t, s, "a/canary=1", "a/blue=2", "a/green=2").install().ask("v2").settle().expect(Staged, "a/canary v2 -")
			w.unit("a/canary").Observed, w.unit("a/canary").Available = true, 0
			w.settle().later(time.Minute).settle().expect(Halted, "a/canary v2 0")
			empty(w, "canary").settle()
			w.wrote = nil
			w.settle().expect(Halted)
			if want := "a/canary: it made no progress for 1m0s"; !strings.Contains(w.last.Why, want) {
				t.Errorf("%s, want %s", w.last.Why, want)
			}
			w.in.Retry = w.in.Record.ID
			w.settle().work().settle()
			if w.wrote = slices.DeleteFunc(w.wrote, func(s string) bool { return strings.HasPrefix(s, "a/canary") }); w.wrote[0] != "a/blue v2 -" {
				t.Errorf("tried again, it wrote %q", w.wrote)
			}
		})
	}
	// To scale all of it down opens no gate.
	s := Strategy{Staging: Staging{Order: colours, Confirm: true}}
	w := newWorld(t, s, "a/canary=1", "a/blue=2").install().ask("v2").settle().work().settle()
	for _, group := range colours {
		scaled(w, group)
	}
	w.settle()
	w.wrote = nil
	w.settle().expect(Waiting)
	w.unit("a/blue").Replicas = 2
	w.settle()
	if got := w.unit("a/blue").Has; got != "v1" {
		t.Errorf("a/blue has %s before its gate is open", got)
	}
}

// TestSoakOfStage: a stage that says 0 does not soak.
func TestSoakOfStage(t *testing.T) {
	s := Strategy{Soak: time.Hour, Staging: Staging{Stages: []StageSpec{{Name: "one", Groups: []string{"canary"}, Soak: new(int32(0))}, {Name: "two", Groups: []string{"blue"}}}}}
	w := newWorld(t, s, "a/canary=1", "a/blue=2", "a/green=2").install().ask("v2").settle().expect(Staged, "a/canary v2 -")
	w.work().settle().expect(Staged, "a/blue v2 -")
	w.work().settle().expect(Staged)
	if want := "stage two has to stay well until 2026-11-01T13:00:00Z"; w.last.Why != want {
		t.Errorf("%s, want %s", w.last.Why, want)
	}
}
