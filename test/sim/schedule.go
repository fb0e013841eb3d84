package sim

import (
	"fmt"
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	"tkestack.io/tapp/test/sim/process"
	"tkestack.io/tapp/test/sim/turns"
)

const (
	// mostSteps of a run, and mostTime after the last fault, within which it has to
	// come to rest.
	mostSteps = 6000
	mostTime  = 3 * time.Hour
	// restTime is how long nothing may be written at the end. Backoffs grow to 5
	// minutes, and what stalls is told of after 10.
	restTime = 16 * time.Minute
	// writeTime is how long a write takes after the last fault. A process that writes
	// without end would otherwise stop the clock, and what it waits for would never come.
	writeTime = 5*time.Millisecond + oddTime
)

// storm runs until the horizon: everything happens in any order.
func (w *world) storm() error {
	for w.steps = 0; w.steps < w.plan.Horizon && w.failure == nil; w.steps++ {
		synctest.Wait()
		w.follow()
		if len(w.alive()) == 0 && w.rng.IntN(4) == 0 || w.steps == 0 {
			if err := w.start(); err != nil {
				return err
			}
			w.trace.say(w.steps, w.now(), "%s starts", w.replicas[len(w.replicas)-1].Name)
			continue
		}
		turns.Pick(w.rng, w.choices(true)).Do()
	}
	return w.failure
}

// choices are what can happen next; stormy: time may pass though there is something
// to do.
func (w *world) choices(stormy bool) []turns.Choice {
	var out []turns.Choice
	for _, r := range w.requests() {
		out = append(out, turns.Choice{Weight: w.mood.requests, What: "request", Do: func() { w.grant(r) }})
	}
	w.watches = slices.DeleteFunc(w.watches, func(x *watching) bool { return !x.IsOpen() })
	slices.SortStableFunc(w.watches, func(a, b *watching) int {
		if a.key() < b.key() {
			return -1
		}
		return 1
	})
	for _, x := range w.watches {
		if len(x.Pending()) > 0 && !w.is(watchFreeze) {
			out = append(out, turns.Choice{Weight: w.mood.watches, What: "watch", Do: func() { w.deliver(x) }})
		}
	}
	for _, name := range w.due() {
		out = append(out, turns.Choice{Weight: w.mood.kubelets, What: "kubelet", Do: func() { w.step(name) }})
	}
	for _, e := range w.errands() {
		out = append(out, turns.Choice{Weight: w.mood.errands, What: "errand", Do: e.do})
	}
	if stormy || len(out) == 0 {
		out = append(out, turns.Choice{Weight: w.mood.clock, What: "clock", Do: func() { w.advance(w.span(), false) }})
	}
	return out
}

// oddTime is added to spans of time, so that what they end does not fall together with
// what other clocks end: of two things at one instant, either may come first.
const oddTime = 7 * time.Microsecond

// span is how long time passes in a storm.
func (w *world) span() time.Duration {
	out := oddTime
	switch n := w.rng.IntN(100); {
	case n < 50:
		out += time.Duration(w.rng.IntN(50_000)) * time.Microsecond
	case n < 80:
		out += time.Duration(50_000+w.rng.IntN(1_000_000)) * time.Microsecond
	case n < 98:
		out += time.Duration(1_000_000+w.rng.IntN(10_000_000)) * time.Microsecond
	default:
		out += time.Duration(1_000_000+w.rng.IntN(90_000_000)) * time.Microsecond
	}
	return out
}

// deliver tells a watch of one or more changes.
func (w *world) deliver(x *watching) {
	n := 1
	if w.rng.IntN(3) == 0 {
		n = 1 + w.rng.IntN(5)
	}
	for range n {
		x.Next()
		x.replica.told[x.Resource] = x.Told
		synctest.Wait() // of two keys that come due together, either may come first
		w.requests()    // what follows was made on this, and not on the next one
	}
	w.trace.quiet(w.steps, w.now(), "%s sees %s up to %d", x.replica.Name, x.Resource, x.Told)
}

// calm lets everything that can happen happen, until nothing does any more.
func (w *world) calm() error {
	w.heal()
	began, last, quiet := w.now(), w.Version, w.now()
	for ; w.failure == nil; w.steps++ {
		synctest.Wait()
		list := w.choices(false)
		if len(list) == 1 && list[0].What == "clock" {
			w.advance(2*time.Minute, false)
		} else {
			turns.Pick(w.rng, list).Do()
		}
		if w.Version != last {
			last, quiet = w.Version, w.now()
			w.advance(writeTime, false)
		}
		if w.wrote.After(quiet) {
			quiet = w.wrote
		}
		if w.now().Sub(quiet) >= restTime {
			return w.failure
		}
		if w.steps > mostSteps || w.now().Sub(began) > mostTime {
			w.fail(fmt.Errorf("L1: no rest after %d steps and %s without faults", w.steps, w.now().Sub(began)))
		}
	}
	return w.failure
}

// end ends all processes, so that nothing of the run is left.
func (w *world) end() {
	process.End(w.replicas, w.kill, func(d time.Duration) { w.advance(d, true) })
}

// grant carries out a request, with what goes wrong about it.
func (w *world) grant(r *request) {
	if r.Verb == "watch" {
		w.done(r)
		x, a := w.ServeWatch(r.Request, w.oldest())
		if x != nil {
			w.watches = append(w.watches, &watching{x, r.replica})
			if r.Query.Get("sendInitialEvents") == "true" {
				r.replica.told[r.Resource] = x.Told
			}
		}
		w.trace.quiet(w.steps, w.now(), "%s %s from %s", r.replica.Name, r, r.Query.Get("resourceVersion"))
		r.answer <- a
		return
	}
	if r.IsWrite() {
		w.write(r)
		return
	}
	w.done(r)
	lag := int64(0)
	if w.is(staleReads) {
		lag = int64(w.rng.IntN(20))
	}
	a := w.Serve(r.Request, lag, r.actor(w.now()))
	w.oracle.read(r)
	if r.Verb == "list" && r.Query.Get("resourceVersion") != "" {
		r.replica.told[r.Resource] = w.Version - lag
	}
	w.trace.quiet(w.steps, w.now(), "%s %s: %s", r.replica.Name, r, strconv.Itoa(a.Status))
	r.answer <- a
}

// oldest version that watches may begin from.
func (w *world) oldest() int64 {
	if w.is(watchExpire) {
		return w.Version
	}
	return 0
}
