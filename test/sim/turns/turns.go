// Package turns has one thing happen at a time in a simulation: requests wait at a desk
// until one of all choices is picked (desk.go), and a clock of virtual time stands between.
// What comes due on it at one instant comes in the order in which it was asked for, and each
// has its effect before the next. The timers of a bubble of testing/synctest that end
// together fire in any order.
package turns

import (
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// Clock must be made and used in one bubble. Its timers fire in Advance, and only there.
type Clock struct {
	mu      sync.Mutex
	waiting []*timer // by when they are due, and then by when they were asked for
}

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time { return time.Now() }

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return time.Since(t) }

// After implements clock.Clock.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Sleep implements clock.Clock.
func (c *Clock) Sleep(d time.Duration) { <-c.After(d) }

// Tick implements clock.Clock.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.NewTicker(d).C() }

// NewTimer implements clock.Clock.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	t := &timer{clock: c, out: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// NewTicker implements clock.WithTicker.
func (c *Clock) NewTicker(d time.Duration) clock.Ticker {
	t := &timer{clock: c, out: make(chan time.Time, 1), every: d}
	t.Reset(d)
	return ticker{t}
}

// Advance lets time pass until then, or until something comes on the channel, and fires
// what comes due, one at a time.
func (c *Clock) Advance(until time.Time, activity <-chan struct{}) {
	for {
		next, due := until, c.next()
		if due != nil && !due.when.After(until) {
			next = due.when
		} else {
			due = nil
		}
		if left := time.Until(next); left > 0 && !sleep(left, activity) {
			return
		}
		if due == nil {
			return
		}
		c.fire(due)
		synctest.Wait()
		select {
		case <-activity:
			return
		default:
		}
	}
}

// sleep says whether all of the time went by.
func sleep(d time.Duration, activity <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-activity:
		return false
	case <-t.C:
		return true
	}
}

func (c *Clock) next() *timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return nil
	}
	return c.waiting[0]
}

// fire a timer, unless it was stopped meanwhile.
func (c *Clock) fire(t *timer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.drop(t) {
		return
	}
	select {
	case t.out <- time.Now():
	default: // a tick that nobody took
	}
	if t.every > 0 {
		c.add(t, t.when.Add(t.every))
	}
}

// drop says whether the timer was waiting.
func (c *Clock) drop(t *timer) bool {
	i := slices.Index(c.waiting, t)
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	return true
}

func (c *Clock) add(t *timer, when time.Time) {
	t.when = when
	i, _ := slices.BinarySearchFunc(c.waiting, when, func(w *timer, when time.Time) int {
		if w.when.After(when) {
			return 1
		}
		return -1
	})
	c.waiting = slices.Insert(c.waiting, i, t)
}

// timer, and ticker if every is not 0. The clock's lock is that of its fields.
type timer struct {
	clock *Clock
	out   chan time.Time
	when  time.Time
	every time.Duration
}

func (t *timer) C() <-chan time.Time { return t.out }

func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.clock.drop(t)
	t.drain()
	return was
}

func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.clock.drop(t)
	t.drain()
	if d <= 0 {
		t.out <- time.Now()
		return was
	}
	t.clock.add(t, time.Now().Add(d))
	return was
}

// drain as timers do since Go 1.23: nothing old comes out.
func (t *timer) drain() {
	select {
	case <-t.out:
	default:
	}
}

type ticker struct{ *timer }

func (t ticker) Stop() { t.timer.Stop() }
