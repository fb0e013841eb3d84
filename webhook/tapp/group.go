package tapp

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// group runs functions concurrently. A panic in one of them ends the request, not
// the process: wait panics in its place, where panics are contained.
type group struct {
	running sync.WaitGroup

	mu    sync.Mutex
	cause error
}

func (g *group) do(f func()) {
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

// each runs a function for every index below n, on all processors.
func (g *group) each(n int, f func(i int)) {
	var taken atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		g.do(func() {
			for i := int(taken.Add(1)) - 1; i < n; i = int(taken.Add(1)) - 1 {
				f(i)
			}
		})
	}
}

// wait until all functions have returned.
func (g *group) wait() {
	g.running.Wait()
	if g.cause != nil {
		panic(g.cause) //nolint:forbidigo // it was one already, on another stack
	}
}
