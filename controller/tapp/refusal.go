package tapp

import (
	"errors"
	"maps"
	"sync"
	"time"

	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/plan/refusal"
	plan "tkestack.io/tapp/plan/tapp"
)

// refused is what the API server refuses of one TApp, through the writes of a sync. It says
// the same from sync to sync, whatever the order in which writes are made beside each other.
type refused struct {
	now time.Time
	mu  sync.Mutex
	set refusal.Set
}

// since goes on from what was refused before. Plans keep that, so that it is copied.
func since(before refusal.Set, now time.Time) *refused {
	r := &refused{now: now, set: maps.Clone(before)}
	if r.set == nil {
		r.set = refusal.Set{}
	}
	return r
}

// passed: an action came through.
func (r *refused) passed(a *plan.Action) {
	if a.ID == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set.Passed(number(a.ID), string(a.Op))
}

// note a failure of an action, or of the part of it that failed. What ends for all objects
// at once is no refusal.
func (r *refused) note(op plan.Op, a *plan.Action, err error) {
	if a.ID == "" || refusal.ReasonOf(string(op)) == "" || !write.IsRefusal(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if op == plan.OpReplace {
		op = plan.OpCreate // the deletion is a part of its own
	}
	r.set.Note(refusal.Key{ID: number(a.ID), Op: string(op)}, words(err, objectOf(a)), r.now)
}

// partError says that another operation failed than the action's: one that is a part of it.
type partError struct {
	op  plan.Op
	err error
}

func (e *partError) Error() string { return e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

// failedPart of an action: the operation that the error is about.
func failedPart(a *plan.Action, err error) plan.Op {
	var part *partError
	if errors.As(err, &part) {
		return part.op
	}
	return a.Op
}
