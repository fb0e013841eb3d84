package rollout

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestJoins: a cluster that joins in the middle neither jumps the gate nor ends the rollout.
func TestJoins(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours, Confirm: true}, Concurrent: new(intstr.FromInt32(9))}
	w := newWorld(t, s, "a/canary=1", "a/blue=2").install().ask("v2").settle().work().settle()
	w.wrote = nil
	id := w.last.Record.ID
	w.add("c/canary=1")
	w.add("c/blue=2")
	w.ask("v2").settle() // the stable revision knows nothing of them
	w.expect(Waiting, "c/canary v2 -")
	w.work().settle().expect(Waiting)
	if w.last.Record.ID != id {
		t.Error("it is another rollout")
	}
	w.confirm().settle().expect(Staged, "a/blue v2 -", "c/blue v2 -")
	w.in.Units = w.in.Units[:3] // it leaves again but for its canary
	w.ask("v2").work().settle().expect(Done)
}

// TestJoinsInstallation: an installation has no gates, also for what joins before it is done,
// and although the content of the others is known by then.
func TestJoinsInstallation(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours, Confirm: true}}
	w := newWorld(t, s, "a/canary=1", "a/blue=2").settle().expect(Installing, "a/canary v1 -", "a/blue v1 -")
	w.in.Record.Stable = w.in.Record.Revision
	w.add("c/canary=1")
	w.add("c/blue=2")
	w.ask("v1").settle().expect(Installing, "c/canary v1 -", "c/blue v1 -")
	w.work().settle().expect(Done)
	w.ask("v2").settle().expect(Staged, "a/canary v2 -")
}

// TestJoinsRollback: what joined has nothing to return to, and stays as it is.
func TestJoinsRollback(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours}, Deadline: time.Minute, Rollback: true}
	w := newWorld(t, s, "a/canary=1", "a/blue=2").install().ask("v2").settle().expect(Staged, "a/canary v2 -")
	w.add("c/canary=1")
	w.add("c/blue=2")
	w.ask("v2")
	w.in.Units[0].Observed, w.in.Units[0].Available = true, 0
	w.settle().later(time.Minute).settle().expect(RollingBack, "a/canary v1 -")
	w.work().settle().expect(RolledBack)
}
