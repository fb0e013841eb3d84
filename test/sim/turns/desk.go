package turns

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Choice is one of the things that can happen next, by how often it is picked.
type Choice struct {
	Weight int
	What   string
	Do     func()
}

// Pick one of the choices.
func Pick(rng *rand.Rand, list []Choice) Choice {
	total := 0
	for _, c := range list {
		total += c.Weight
	}
	n := rng.IntN(total)
	for _, c := range list {
		if n -= c.Weight; n < 0 {
			return c
		}
	}
	return list[len(list)-1]
}

// Request of a process. Order is the same in equal runs.
type Request interface {
	comparable
	Order() string
}

// Desk has the requests that wait until the simulation carries them out.
type Desk[R Request] struct {
	mu      sync.Mutex
	waiting []R
	came    chan struct{} // a request has come
}

// NewDesk is one without requests.
func NewDesk[R Request]() *Desk[R] { return &Desk[R]{came: make(chan struct{}, 1)} }

// Submit a request.
func (d *Desk[R]) Submit(r R) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, r)
	select {
	case d.came <- struct{}{}:
	default:
	}
}

// Take a request from the desk.
func (d *Desk[R]) Take(r R) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = slices.DeleteFunc(d.waiting, func(x R) bool { return x == r })
}

// Waiting are the requests in an order that does not depend on when they came. Those that
// are lost are dropped.
func (d *Desk[R]) Waiting(lost func(R) bool) []R {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = slices.DeleteFunc(d.waiting, lost)
	out := slices.Clone(d.waiting)
	slices.SortStableFunc(out, func(a, b R) int { return cmp.Compare(a.Order(), b.Order()) })
	return out
}

// Advance lets time pass: that much, or until a request comes.
func (d *Desk[R]) Advance(c *Clock, by time.Duration) {
	until := time.Now().Add(by)
	select {
	case <-d.came:
	default:
	}
	c.Advance(until, d.came)
}
