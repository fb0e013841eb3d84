package app

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
	"tkestack.io/tapp/test/sim/turns"
)

const (
	// mostSteps of a run, and mostTime after the last fault, within which it has to come to
	// rest; restTime is how long nothing may be written at the end.
	mostSteps = 3000
	mostTime  = time.Hour
	restTime  = 2 * time.Minute
	// oddTime keeps apart what ends at one instant.
	oddTime = 7 * time.Microsecond
)

// world is one run: a cluster, the processes of the controller, and a scheduler that
// decides what happens next.
type world struct {
	*apiserver.Server
	plan  Plan
	rng   *rand.Rand
	clock *turns.Clock
	began time.Time
	steps int

	replicas []*replica
	started  int
	watches  []*watching

	desk *turns.Desk[*request]

	wrote    time.Time // when the controller last tried to
	armed    []string  // faults of writes that wait for one
	frozen   int       // until which step watches stand still
	coverage map[string]int
	failure  error
	lines    []string
	digest   uint64
}

func newWorld(p Plan, f fields) *world {
	w := &world{plan: p, rng: rand.New(rand.NewPCG(uint64(p.Seed), 2)), clock: &turns.Clock{}, began: time.Now(), desk: turns.NewDesk[*request](), coverage: map[string]int{}}
	w.Server = apiserver.New(time.Now, kinds(f))
	w.Watchers = append(w.Watchers, w.see)
	return w
}

func (w *world) as(who string) apiserver.Actor { return apiserver.Actor{By: who, At: time.Now()} }

// see is told of every step of every object.
func (w *world) see(c *apiserver.Change) {
	verb := map[bool]string{true: "is made"}[c.Before == nil]
	if c.After == nil {
		verb = "is gone"
	}
	w.say("     %d %s %s by %s", c.Version, apiserver.NameOf(c.Resource, c.Object()), verb, c.By)
	if err := w.judge(c); err != nil {
		w.fail(err)
	}
}

func (w *world) fail(err error) {
	if w.failure == nil {
		w.failure = fmt.Errorf("step %d, after %s: %w", w.steps, time.Since(w.began), err)
		w.say("FAILURE: %v", err)
	}
}

func (w *world) say(format string, args ...any) {
	line := fmt.Sprintf("%4d %12s  %s", w.steps, time.Since(w.began), fmt.Sprintf(format, args...))
	h := fnv.New64a()
	_, _ = io.WriteString(h, line)
	w.digest = w.digest*31 + h.Sum64()
	w.lines = append(w.lines, line)
}

// requests that wait.
func (w *world) requests() []*request {
	return w.desk.Waiting(func(r *request) bool { return r.abandoned.Load() && !r.IsWrite() })
}

func (w *world) alive() []*replica { return process.Alive(w.replicas) }

// kill crashes a process: its requests get no answer, and may still arrive.
func (w *world) kill(r *replica) {
	w.say("%s crashes", r.Name)
	r.Crash()
	for _, q := range w.requests() {
		if q.replica == r && !q.abandoned.Swap(true) {
			q.answer <- &apiserver.Answer{Err: process.ErrDead}
		}
	}
	for _, x := range w.watches {
		if x.replica == r {
			x.End()
		}
	}
}

// advance lets time pass: that much, or until something asks for an answer.
func (w *world) advance(d time.Duration) { w.desk.Advance(w.clock, d) }

// storm runs until the horizon: everything happens in any order.
func (w *world) storm() error {
	for w.steps = 0; w.steps < w.plan.Horizon && w.failure == nil; w.steps++ {
		synctest.Wait()
		for _, e := range w.plan.Events {
			if e.Step == w.steps {
				w.strike(e)
			}
		}
		if len(w.alive()) == 0 {
			if err := w.start(); err != nil {
				return err
			}
			continue
		}
		turns.Pick(w.rng, w.choices(true)).Do()
	}
	return w.failure
}

// calm lets everything that can happen happen, until nothing does any more.
func (w *world) calm() error {
	w.armed, w.frozen = nil, 0
	if len(w.alive()) == 0 {
		if err := w.start(); err != nil {
			return err
		}
	}
	w.say("from here on nothing goes wrong")
	began := time.Now()
	for w.wrote = began; w.failure == nil; w.steps++ {
		synctest.Wait()
		turns.Pick(w.rng, w.choices(false)).Do()
		if time.Since(w.wrote) >= restTime {
			if err := w.atRest(); err != nil {
				w.fail(err)
			}
			return w.failure
		}
		if w.steps > mostSteps || time.Since(began) > mostTime {
			w.fail(fmt.Errorf("A5: no rest after %d steps and %s without faults", w.steps, time.Since(began)))
		}
	}
	return w.failure
}

// choices are what can happen next; stormy: time may pass though there is something to do.
func (w *world) choices(stormy bool) []turns.Choice {
	var out []turns.Choice
	for _, r := range w.requests() {
		out = append(out, turns.Choice{Weight: 20, Do: func() { w.grant(r) }})
	}
	w.watches = slices.DeleteFunc(w.watches, func(x *watching) bool { return !x.IsOpen() })
	slices.SortStableFunc(w.watches, func(a, b *watching) int { return cmp.Compare(a.key(), b.key()) })
	for _, x := range w.watches {
		if len(x.Pending()) > 0 && w.frozen <= w.steps {
			out = append(out, turns.Choice{Weight: 10, Do: x.Next})
		}
	}
	if do := w.errand(); do != nil {
		out = append(out, turns.Choice{Weight: 10, Do: do})
	}
	switch {
	case stormy:
		out = append(out, turns.Choice{Weight: 10, Do: func() { w.advance(oddTime + time.Duration(w.rng.IntN(1_000_000))*time.Microsecond) }})
	case len(out) == 0:
		out = append(out, turns.Choice{Weight: 1, Do: func() { w.advance(10*time.Second + oddTime) }})
	}
	return out
}

// end ends all processes, so that nothing of the run is left.
func (w *world) end() {
	process.End(w.replicas, w.kill, func(d time.Duration) { w.clock.Advance(time.Now().Add(d), nil) })
}

// grant carries out a request, with what goes wrong about it.
func (w *world) grant(r *request) {
	w.desk.Take(r)
	who := apiserver.Actor{By: r.replica.Name, At: time.Now(), Cause: r}
	switch {
	case r.Verb == "watch":
		x, a := w.ServeWatch(r.Request, 0)
		if x != nil {
			w.watches = append(w.watches, &watching{x, r.replica})
		}
		r.answer <- a
	case !r.IsWrite():
		r.answer <- w.Serve(r.Request, 0, who)
	case !r.abandoned.Load():
		w.write(r, who)
	case w.rng.IntN(2) == 0:
		w.say("%s (gone) %s: arrives late", r.replica.Name, r)
		w.Serve(r.Request, 0, who)
	}
}

// write carries out a write with the fault that waits for one.
func (w *world) write(r *request, who apiserver.Actor) {
	fault := ""
	if r.Resource != apiserver.Events {
		if w.wrote = time.Now(); len(w.armed) > 0 {
			fault, w.armed = w.armed[0], w.armed[1:]
			w.coverage[r.site()+" | "+fault]++
		}
		w.coverage[r.site()]++
		w.say("%s %s %s %s", r.replica.Name, r, r.Body, fault)
	}
	var a *apiserver.Answer
	switch fault {
	case crashBefore:
		w.kill(r.replica)
		a = &apiserver.Answer{Err: process.ErrDead}
	case conflict:
		a = apiserver.Refusal(apierrors.NewConflict(w.GroupResource(r.Resource), r.Name, fmt.Errorf("simulated")))
	case serverError:
		a = apiserver.Refusal(apierrors.NewInternalError(fmt.Errorf("simulated")))
	case tooMany:
		a = apiserver.Refusal(apierrors.NewTooManyRequests("simulated", 1))
		a.Header = http.Header{"Retry-After": {"1"}}
	default:
		if a = w.Serve(r.Request, 0, who); a.Status >= http.StatusBadRequest {
			w.say("     answered %d %s", a.Status, a.Body)
		}
	}
	switch fault {
	case crashAfter:
		w.kill(r.replica)
		a = &apiserver.Answer{Err: process.ErrDead}
	case lostAnswer:
		a = &apiserver.Answer{Err: context.DeadlineExceeded}
	}
	r.answer <- a
}
