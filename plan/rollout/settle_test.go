package rollout

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestSettled: a reservation whose write failed, and is not wanted any more, does not keep
// the budget from others, and who waits for the budget does not fail by the clock.
func TestSettled(t *testing.T) {
	for name, written := range map[string]*int32{"no grant": nil, "a grant of 0": new(int32(0))} {
		t.Run(name, func(t *testing.T) {
			s := Strategy{Concurrent: new(intstr.FromInt32(9)), MaxUnavailable: new(intstr.FromInt32(1)), Deadline: time.Minute}
			w := newWorld(t, s, "a/x=2", "b/y=3").install()
			a := w.unit("a/x")
			a.Grant, a.Ceiling = written, new(int32(1))
			w.in.Record = w.ask("v2", "x").compute().Record // it is reserved, and the write fails
			if bound := w.in.Record.boundOf(a.Key); bound == nil || bound.Version != a.Version {
				t.Fatalf("nothing is reserved: %+v", w.in.Record)
			}
			w.ask("v1", "x").ask("v2", "y").settle().expect(Staged, "a/x v1 0")
			w.later(2 * time.Minute).settle().expect(Staged)
			w.work("a/x").settle().expect(Staged, "b/y v2 1")
			w.work("b/y").settle().expect(Done)
		})
	}
}
