package rollout

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// installing is a fleet with gates whose installation has begun, with so many instances available.
func installing(t *testing.T, available map[string]int32) *world {
	s := Strategy{Staging: Staging{Canaries: []string{"a"}, Confirm: true}, MaxUnavailable: new(intstr.FromInt32(1)), Deadline: time.Minute}
	w := newWorld(t, s, "a/x=1", "b/x=2", "c/x=2")
	w.recovers = true
	w.settle().expect(Installing, "a/x v1 -", "b/x v1 -", "c/x v1 -")
	for i := range w.in.Units {
		u := &w.in.Units[i]
		u.Observed, u.Desired, u.Current, u.Updated, u.Available = true, u.Replicas, u.Replicas, u.Replicas, available[u.Cluster]
	}
	return w
}

// TestNeverRan: what is asked for in place of an installation of which nothing ever ran is
// installed, without stages and gates.
func TestNeverRan(t *testing.T) {
	t.Run("nothing ran", func(t *testing.T) {
		w := installing(t, nil).settle().expect(Installing)
		if r := w.in.Record; w.last.Ran || r.Stable != "" {
			t.Errorf("the record is %+v", r)
		}
		w.ask("v2").settle().expect(Installing, "a/x v2 1", "b/x v2 0", "c/x v2 0")
		w.work().settle().expect(Installing, "b/x v2 1")
		w.work().settle().expect(Installing, "c/x v2 1")
		w.work().settle().expect(Done)
		if r := w.in.Record; r.Installing || w.last.Ran || r.Unproven || r.Stable != r.Revision {
			t.Errorf("the record is %+v", r)
		}
	})
	t.Run("some ran, and nothing does now", func(t *testing.T) {
		w := installing(t, map[string]int32{"b": 1}).settle()
		w.unit("b/x").Available = 0
		w.ask("v2").settle().expect(Staged, "a/x v2 1")
	})
	t.Run("nobody knows of a cluster", func(t *testing.T) {
		w := installing(t, nil).settle()
		w.cluster("c").Fresh, w.cluster("c").Ready = false, false
		w.in.Strategy.AsLastSeen = true
		w.ask("v2").settle().expect(Staged, "a/x v2 1")
	})
	t.Run("a cluster was not seen yet", func(t *testing.T) {
		w := installing(t, nil).settle()
		w.unit("c/x").Sight = Sight{Unseen: true}
		w.cluster("c").Fresh, w.cluster("c").Ready = false, false
		w.in.Strategy.AsLastSeen = true
		w.ask("v2").settle().expect(Staged, "a/x v2 1")
	})
}

// TestUnproven: where an installation was given up of which some ran, what of it does not come up
// locks nobody out who is before its repair, and nobody goes back to it from what runs.
func TestUnproven(t *testing.T) {
	w := installing(t, map[string]int32{"a": 1}).settle() // two in b and c each are down, and one may be
	w.ask("v2").settle().expect(Staged, "a/x v2 1")
	w.work("a/x").settle().expect(Waiting)
	w.confirm().settle().expect(Staged, "b/x v2 1")
	w.work("b/x").ask("v3").settle().expect(Staged, "a/x v3 1")
	if v := w.last.Units[1]; v.Content != "v2" {
		t.Errorf("b/x goes back to %s", v.Content)
	}
	if !w.in.Record.Unproven {
		t.Error("what is stable has never run, and counts as if it had")
	}
	w.work("a/x").settle().expect(Waiting)
	w.confirm().settle().expect(Staged, "b/x v3 1")
	w.work("b/x").settle().expect(Staged, "c/x v3 1")
	w.work("c/x").settle().expect(Done)
	if w.in.Record.Unproven {
		t.Error("all have run, and count as if they had not")
	}
	w.unit("b/x").Available = 0 // it fails by itself, and is an outage now
	w.ask("v4").settle().expect(Staged)
}

// TestHoldsBudget: where what is stable is unproven, instances that were taken out of service and did
// not come back are repaired first: nothing else gives their budget back.
func TestHoldsBudget(t *testing.T) {
	for name, concurrent := range map[string]int32{"one cluster at once": 1, "two": 2} {
		t.Run(name, func(t *testing.T) {
			w := installing(t, map[string]int32{"a": 1})
			w.in.Strategy.Staging, w.in.Strategy.Concurrent = Staging{}, new(intstr.FromInt32(concurrent))
			w.settle().ask("v2").settle().expect(Staged, "a/x v2 1")
			w.work("a/x").settle().expect(Staged, "b/x v2 1") // which does not run there
			w.unit("b/x").Observed = true
			w.ask("v3").settle().expect(Staged, "b/x v3 1")
			w.work("b/x").settle().expect(Staged, "a/x v3 1")
			w.work("a/x").settle().expect(Staged, "c/x v3 1")
			w.work("c/x").settle().expect(Done)
		})
	}
}

// TestStaysAsItIs: a unit that waits is not taken on to what never ran.
func TestStaysAsItIs(t *testing.T) {
	w := installing(t, map[string]int32{"a": 1}).settle()
	u := w.unit("c/x")
	u.Updated, u.Available = 0, 2 // the installation has replaced something that runs
	w.in.Strategy.MaxUnavailable = new(intstr.FromInt32(9))
	w.ask("v2").settle().expect(Staged, "a/x v2 1", "c/x v1 0")
}
