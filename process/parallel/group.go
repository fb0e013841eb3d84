// Package parallel runs functions beside each other for one piece of work, whose end
// theirs is: what panics in one of them is a panic of the whole.
package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Group runs functions concurrently. A panic in one of them ends the request or the
// sync that they belong to, not the process: Wait panics in its place, where panics are
// contained. The zero value is ready.
type Group struct {
	running sync.WaitGroup

	mu    sync.Mutex
	cause error
}

// Do starts a function.
func (g *Group) Do(f func()) {
	g.running.Go(func() {
		defer func() {
			if cause := recover(); cause != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.cause = fmt.Errorf("%v\n%s", cause, debug.Stack())
			}
		}()
		f()
	})
}

// Each runs a function for every index below n, on all processors.
func (g *Group) Each(n int, f func(i int)) {
	var taken atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		g.Do(func() {
			for i := int(taken.Add(1)) - 1; i < n; i = int(taken.Add(1)) - 1 {
				f(i)
			}
		})
	}
}

// Wait until all functions have returned.
func (g *Group) Wait() {
	g.running.Wait()
	if g.cause != nil {
		panic(g.cause) //nolint:forbidigo // it was one already, on another stack
	}
}
