package write

import (
	"sync"

	"tkestack.io/tapp/process/parallel"
)

// Writes of one sync start slowly: one at first, twice as many whenever all that
// were allowed came through, at most maxConcurrent. So an error that all of them
// would meet, such as an exhausted quota, is met once and not a thousand times.
//
// What an error concerns decides what follows: see reach. What did not get its
// turn comes again with the next plan.
//
// maxConsecutiveErrors is after how many errors in a row a class is given up. Less
// would let a single bad object keep those behind it from ever being tried.
const maxConsecutiveErrors = 3

// slowStart carries out writes.
type slowStart struct {
	// over says whether to start no further write, for reasons of its own.
	over func() bool
	// most is how many writes may be under way.
	most int

	mu      sync.Mutex
	free    sync.Cond
	allowed int
	running int
	halted  bool
	errors  map[string]int // of a class since its last success; maxConsecutiveErrors: given up
}

func newSlowStart(allowed, most int, over func() bool) *slowStart {
	s := &slowStart{over: over, allowed: min(max(1, allowed), most), most: most, errors: map[string]int{}}
	s.free.L = &s.mu
	return s
}

// run carries out the writes in order, many at a time, and returns when all have
// ended, with how many did not get their turn. A panic in one of them becomes one of run.
func (s *slowStart) run(writes []Write) (skipped int) {
	var running parallel.Group
	for _, w := range writes {
		if !s.begin(w.Class) {
			skipped++
			continue
		}
		running.Do(func() { s.carryOut(w) })
	}
	running.Wait()
	return skipped
}

// carryOut a write. One that panics is the last that starts.
func (s *slowStart) carryOut(w Write) {
	how := reachAll // unless it says otherwise
	defer func() { s.end(w.Class, how) }()
	how = reachOf(w.Do())
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
	if s.halted || s.errors[class] >= maxConsecutiveErrors {
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
		s.errors[class] = 0
		s.allowed = min(s.allowed+1, s.most)
	case reachOne:
	case reachSome:
		s.errors[class]++
		s.allowed = 1
	case reachClass:
		s.errors[class] = maxConsecutiveErrors
		s.allowed = 1
	case reachAll:
		s.halted = true
	}
	s.free.Signal()
}
