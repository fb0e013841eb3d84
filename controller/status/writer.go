// Package status writes the statuses of objects of any kind: no faster than is good for
// the API server (writer.go), in turns where they only tell of work that goes on
// (turns.go), and as patches of what differs (patch.go). The last status of an object is
// always written. It knows no kind.
package status

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/write"
)

const (
	// share of the time that writing the status of one object may take: one write that
	// takes long puts the next one off by share times as long, so that telling of the work
	// does not hold up the work. maxPause bounds that: after an outage the status has to be
	// true soon, however long the write took that the outage held up.
	share    = 5
	maxPause = 10 * time.Second
	// conflictAgain is when to try again after a conflict, if no event tells earlier.
	conflictAgain = time.Second
)

// Writer writes the statuses of all objects of a kind.
type Writer struct {
	clock clock.PassiveClock
	// interval is how far apart two writes for one object are at least, hold how long a
	// deferrable status is held back at least.
	interval, hold time.Duration
	turns          turns
}

// NewWriter makes a writer. Two writes for one object are interval apart at least, and
// a deferrable status is held back for hold at least.
func NewWriter(c clock.PassiveClock, interval, hold time.Duration) *Writer {
	return &Writer{clock: c, interval: interval, hold: hold, turns: newTurns()}
}

// Status of an object that differs, or does not, from the stored one.
type Status struct {
	Object klog.ObjectRef
	UID    types.UID
	// Stored and Next point to the status that the object has and to the one that it is
	// to have.
	Stored, Next any
	// Deferrable is true of a status that tells only of work that goes on, and may become
	// another one before anybody reads it.
	Deferrable bool
	// Patch writes a merge patch of the status, and returns the API server's error.
	Patch func(ctx context.Context, data []byte) error
}

// Throttle holds back the statuses of one object that come too fast. Only the last one
// counts. The zero value holds back nothing.
type Throttle struct {
	last time.Time // when one was written
	took time.Duration
	turn time.Time // when a deferrable status may be written; zero: not asked for
	held *Status
}

// Put writes the status if it says something else than the stored one, or
// returns after how long to come again with the then current one.
func (w *Writer) Put(ctx context.Context, t *Throttle, s Status) (again time.Duration, err error) {
	t.held = nil
	if equality.Semantic.DeepEqual(s.Stored, s.Next) {
		t.turn = time.Time{}
		return 0, nil
	}
	now := w.clock.Now()
	left := t.last.Add(max(w.interval, min(share*t.took, maxPause))).Sub(now)
	if s.Deferrable {
		if t.turn.IsZero() {
			t.turn = w.turns.next(now, w.hold)
		}
		left = max(left, t.turn.Sub(now))
	}
	if left > 0 {
		t.held = &s
		return left, nil
	}
	t.last, t.turn = now, time.Time{}
	again, err = s.write(ctx)
	t.took = w.clock.Since(now)
	w.turns.wrote(t.took)
	return again, err
}

// Flush writes the status that is held back, at the end of a run.
func (w *Writer) Flush(ctx context.Context, t *Throttle) {
	if t.held == nil || ctx.Err() != nil {
		return // what is not written, the next leader will
	}
	if _, err := t.held.write(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Status lost", "object", t.held.Object)
	}
}

// write makes the patch. That it is not conditional on a resourceVersion loses nothing:
// nobody else writes the status.
func (s *Status) write(ctx context.Context) (again time.Duration, err error) {
	data, err := Patch(s.UID, s.Stored, s.Next)
	if err != nil {
		return 0, fmt.Errorf("comparing the status: %w", err)
	}
	err = s.Patch(ctx, data)
	switch {
	case err == nil, apierrors.IsNotFound(err), write.IsOtherUID(err):
		return 0, nil // written, or the object is gone, or another one
	case apierrors.IsConflict(err): // others wrote to it all the while
		return conflictAgain, nil
	}
	return 0, fmt.Errorf("writing the status: %w", err)
}
