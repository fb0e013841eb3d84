// Package write carries out the writes of syncs, of any kind: it starts slowly
// (slowstart.go, concurrency.go), knows what errors mean (errors.go) and collects them
// (failures.go), and asks once more before anything is adopted (adoption.go). It knows
// no kind.
package write

import (
	"context"
	"errors"
	"sync"

	"k8s.io/utils/clock"
)

const (
	// MaxConcurrent is how many writes are under way for one object at most.
	MaxConcurrent = 64
	// maxInAll is how many writes all objects of a kind have under way together. Few of
	// them cannot use it up, if theirs hang on a slow admission webhook.
	maxInAll = 5 * MaxConcurrent
)

// Writer carries out the writes for all objects of a kind.
type Writer struct {
	clock         clock.PassiveClock
	maxConcurrent int
	trust         trust
	slots         slots
}

// NewWriter makes a writer that has at most so many writes under way for one object.
// With one they are made in order.
func NewWriter(c clock.PassiveClock, maxConcurrent int) *Writer {
	return &Writer{clock: c, maxConcurrent: maxConcurrent, slots: make(slots, maxInAll)}
}

// Write of one object.
type Write struct {
	// Op is what is done.
	Op string
	// Class of writes that are expected to fail alike, such as the same operation with
	// the same template.
	Class string
	// Do makes the write. ErrStale is no fault.
	Do func() error
}

// Batch is what one sync writes, in the order in which it is begun.
type Batch struct {
	Namespace string
	Writes    []Write
	// Over says whether to begin no further write.
	Over func() bool
	// InOrder has each write end before the next one begins.
	InOrder bool
}

// Result of a batch.
type Result struct {
	// Done counts the writes that came through, by operation.
	Done map[string]int
	// Stale, Failed and Skipped count those that came too late, those that failed, and
	// those that were not begun.
	Stale, Failed, Skipped int
	// Terminating: the API server says that the namespace is being deleted.
	Terminating bool
}

// Run carries out a batch, and returns when all that was begun has ended.
func (w *Writer) Run(ctx context.Context, c *Concurrency, b Batch) Result {
	out := Result{Done: map[string]int{}}
	var mu sync.Mutex
	writes := make([]Write, len(b.Writes))
	for i, one := range b.Writes {
		writes[i] = Write{Op: one.Op, Class: one.Class, Do: func() error {
			free := w.slots.acquire(ctx)
			defer free()
			err := one.Do()
			mu.Lock()
			defer mu.Unlock()
			out.count(one.Op, Outcome(ctx, err))
			out.Terminating = out.Terminating || IsTerminating(err)
			return err
		}}
	}
	now := w.clock.Now()
	most := w.maxConcurrent
	if b.InOrder {
		most = 1
	}
	s := newSlowStart(c.start(now, w.trust.start(b.Namespace, writes, now)), most, b.Over)
	out.Skipped = s.run(writes)
	now = w.clock.Now()
	c.keep(s.allowed, out.Failed == 0, now)
	w.trust.keep(b.Namespace, out.Done, out.Failed == 0, now)
	return out
}

func (r *Result) count(op, outcome string) {
	switch outcome {
	case Done:
		r.Done[op]++
	case Stale:
		r.Stale++
	case Failed:
		r.Failed++
	}
}

// Outcomes of a write, as metrics tell them.
const (
	Done   = "done"
	Stale  = "stale"
	Failed = "failed"
	// Interrupted: this process ends or has lost its lease, which says nothing about the
	// object. Whether the write was made, the next leader sees.
	Interrupted = "brokenOff"
)

// Outcome of a write that returned err.
func Outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, ErrStale):
		return Stale
	case ctx.Err() != nil:
		return Interrupted
	}
	return Failed
}
