package tapp

import (
	"sync"
	"time"
)

// Writes of one sync start slowly: one at first, twice as many whenever all that
// were allowed came through, at most writersAtOnce. So an error that all of them
// would meet, such as an exhausted quota, is met once and not a thousand times. A
// rollout is many syncs in a row: one that follows a faultless one goes on with as
// many as that one ended with.
//
// What an error concerns decides what follows: see reach. What did not get its
// turn comes again with the next plan.
const (
	writersAtOnce = 64
	// mostInARow is after how many errors in a row a class is given up. Less would
	// let a single bad instance keep those behind it from ever being tried.
	mostInARow = 3
	// momentumLasts is for how long after a faultless sync the next one goes on.
	momentumLasts = 10 * time.Second
)

// write is one write of a sync. Those of a class are expected to fail alike.
type write struct {
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
func (s *slowStart) run(writes []write) (skipped int) {
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
}

func (m *momentum) at(now time.Time) int {
	if now.After(m.until) {
		return 1
	}
	return m.allowed
}

func (m *momentum) keep(s *slowStart, faultless bool, now time.Time) {
	*m = momentum{}
	if faultless {
		*m = momentum{allowed: s.allowed, until: now.Add(momentumLasts)}
	}
}
