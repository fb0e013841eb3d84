package write

import (
	"context"
	"maps"
	"sync"
	"time"
)

const (
	// trustLasts is for how long after writes that came through the next ones start
	// with more than one.
	trustLasts = 10 * time.Second
	// startTrusted is how many writes an object of which nothing is known starts with in
	// a namespace that is trusted. It wastes few where the object has a fault of its own.
	startTrusted = 8
)

// Concurrency of one object's writes: a rollout is many syncs in a row, and one that
// follows a faultless one goes on with as many writes at once as that one ended with.
// The zero value starts slowly.
type Concurrency struct {
	allowed int
	until   time.Time
	failed  bool // some of the last sync's writes did
}

// start is how many writes at once to start with, where trusted ones of others are.
func (c *Concurrency) start(now time.Time, trusted int) int {
	switch {
	case c.failed:
		return 1
	case now.After(c.until):
		return trusted
	}
	return max(c.allowed, trusted)
}

func (c *Concurrency) keep(allowed int, faultless bool, now time.Time) {
	*c = Concurrency{failed: !faultless}
	if faultless {
		c.allowed, c.until = allowed, now.Add(trustLasts)
	}
}

// trust is where which operations have just come through. Of a thousand small objects
// each would only ever start: one of which nothing is known starts with startTrusted
// writes where all that it does has come through in its namespace, because quotas and
// admission are a namespace's.
type trust struct {
	mu    sync.Mutex
	until map[operation]time.Time
	swept time.Time // when those were dropped that are not trusted any more
}

// operation in a namespace. That one comes through says nothing of another: a
// revision does where a quota lets no pod.
type operation struct{ namespace, op string }

// start is how many writes at once an object may start with if nothing is known of it.
func (t *trust) start(namespace string, writes []Write, now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := ""
	for i := range writes {
		op := writes[i].Op
		if op != last && !now.Before(t.until[operation{namespace, op}]) {
			return 1
		}
		last = op
	}
	return startTrusted
}

// keep what was done for an object. After a fault nothing is trusted in its namespace.
func (t *trust) keep(namespace string, done map[string]int, faultless bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if sweep := now.Sub(t.swept) >= trustLasts; sweep || !faultless {
		t.swept = now
		maps.DeleteFunc(t.until, func(o operation, until time.Time) bool {
			return !now.Before(until) || !faultless && o.namespace == namespace
		})
	}
	if !faultless {
		return
	}
	if t.until == nil {
		t.until = map[operation]time.Time{}
	}
	for op := range done {
		t.until[operation{namespace, op}] = now.Add(trustLasts)
	}
}

// slots bound how many writes are under way.
type slots chan struct{}

// acquire waits for a slot, and returns the function that frees it; none is waited for
// when ctx ends.
func (s slots) acquire(ctx context.Context) (free func()) {
	select {
	case s <- struct{}{}:
		return func() { <-s }
	case <-ctx.Done():
		return func() {}
	}
}
