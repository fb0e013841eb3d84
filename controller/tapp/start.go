package tapp

import (
	"context"
	"maps"
	"sync"
	"time"

	plan "tkestack.io/tapp/plan/tapp"
)

// Writes of one sync start slowly: one at first, twice as many whenever all that
// were allowed came through, at most writersAtOnce. So an error that all of them
// would meet, such as an exhausted quota, is met once and not a thousand times. A
// rollout is many syncs in a row: one that follows a faultless one goes on with as
// many as that one ended with. And of a thousand small TApps each would only ever
// start: one of which nothing is known starts with startTrusted where all that it does
// has just come through in its namespace, because quotas and admission are a
// namespace's.
//
// What an error concerns decides what follows: see reach. What did not get its
// turn comes again with the next plan.
const (
	writersAtOnce = 64
	// writersInAll is how many writes all TApps have under way together. Few of them
	// cannot use it up, if theirs hang on a slow admission webhook.
	writersInAll = 5 * writersAtOnce
	// startTrusted wastes few writes where a TApp has a fault of its own.
	startTrusted = 8
	// mostInARow is after how many errors in a row a class is given up. Less would
	// let a single bad instance keep those behind it from ever being tried.
	mostInARow = 3
	// momentumLasts is for how long after a faultless sync the next one goes on.
	momentumLasts = 10 * time.Second
)

// task is one write of a sync. Those of a class are expected to fail alike.
type task struct {
	class string
	do    func() error
}

// slowStart carries out writes.
type slowStart struct {
	// over says whether to start no further write, for reasons of its own.
	over func() bool

	mu      sync.Mutex
	free    sync.Cond
	allowed int
	running int
	halted  bool
	inARow  map[string]int // errors of a class since its last success; mostInARow: given up
}

func newSlowStart(allowed int, over func() bool) *slowStart {
	s := &slowStart{over: over, allowed: max(1, allowed), inARow: map[string]int{}}
	s.free.L = &s.mu
	return s
}

// run carries out the writes in order, many at a time, and returns when all have
// ended, with how many did not get their turn.
func (s *slowStart) run(writes []task) (skipped int) {
	var running sync.WaitGroup
	for _, w := range writes {
		if !s.begin(w.class) {
			skipped++
			continue
		}
		running.Go(func() { s.end(w.class, reachOf(w.do())) })
	}
	running.Wait()
	return skipped
}

func (s *slowStart) begin(class string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.running >= s.allowed {
		s.free.Wait()
	}
	if !s.halted && s.over() {
		s.halted = true
	}
	if s.halted || s.inARow[class] >= mostInARow {
		return false
	}
	s.running++
	return true
}

func (s *slowStart) end(class string, r reach) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	switch r {
	case reachNone:
		s.inARow[class] = 0
		s.allowed = min(s.allowed+1, writersAtOnce)
	case reachOne:
	case reachSome:
		s.inARow[class]++
		s.allowed = 1
	case reachClass:
		s.inARow[class] = mostInARow
		s.allowed = 1
	case reachAll:
		s.halted = true
	}
	s.free.Signal()
}

// momentum is how many writes at once a sync ended with, if all of them came
// through.
type momentum struct {
	allowed int
	until   time.Time
	failed  bool // some of the last sync's writes did
}

// at is how many writes at once to start with, of which others may start with some.
func (m *momentum) at(now time.Time, others int) int {
	switch {
	case m.failed:
		return 1
	case now.After(m.until):
		return others
	}
	return max(m.allowed, others)
}

func (m *momentum) keep(s *slowStart, faultless bool, now time.Time) {
	*m = momentum{failed: !faultless}
	if faultless {
		m.allowed, m.until = s.allowed, now.Add(momentumLasts)
	}
}

// neighbours know which writes come through where.
type neighbours struct {
	mu      sync.Mutex
	trusted map[deed]time.Time // until when
	swept   time.Time          // when those were dropped that are not any more
}

// deed is what was done in a namespace.
type deed struct {
	namespace string
	op        plan.Op
}

// at is how many writes at once a TApp may start its actions with if nothing is known of
// it. That one operation comes through says nothing of another: a revision does where a
// quota lets no pod.
func (n *neighbours) at(namespace string, actions []plan.Action, now time.Time) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	var last plan.Op
	for i := range actions {
		op := actions[i].Op
		if op != last && !now.Before(n.trusted[deed{namespace, op}]) {
			return 1
		}
		last = op
	}
	return startTrusted
}

// keep what was done for a TApp. After a fault nothing is trusted in its namespace.
func (n *neighbours) keep(namespace string, done map[plan.Op]int, faultless bool, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sweep := now.Sub(n.swept) >= momentumLasts; sweep || !faultless {
		n.swept = now
		maps.DeleteFunc(n.trusted, func(d deed, until time.Time) bool {
			return !now.Before(until) || !faultless && d.namespace == namespace
		})
	}
	if !faultless {
		return
	}
	if n.trusted == nil {
		n.trusted = map[deed]time.Time{}
	}
	for op := range done {
		n.trusted[deed{namespace, op}] = now.Add(momentumLasts)
	}
}

// turns bound how many writes are under way.
type turns chan struct{}

// take a turn, whose end the caller tells; none is left to wait for when ctx ends.
func (t turns) take(ctx context.Context) (end func()) {
	select {
	case t <- struct{}{}:
		return func() { <-t }
	case <-ctx.Done():
		return func() {}
	}
}
