package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
	"tkestack.io/tapp/test/sim/turns"
)

const (
	// mostSteps of a run, and mostTime after the last fault, within which it has to come
	// to rest.
	mostSteps = 12000
	mostTime  = 2 * time.Hour
	// restTime is how long nothing may be written at the end but Leases: backoffs grow to
	// 30 s, and what caches show is old after 2 minutes. mostRest is how long it may take
	// until all is as it should be: a member that is back has to answer for up to 5 minutes
	// before it is Ready.
	restTime = 150 * time.Second
	mostRest = 7 * time.Minute
	// bookmarks come that often.
	bookmarkEvery = time.Minute
	// oddTime keeps what ends here apart from what ends by other clocks.
	oddTime = 7 * time.Microsecond
)

// storm runs until the horizon: everything happens in any order.
func (w *world) storm() error {
	for w.steps = -1; (w.steps+1 < w.plan.Horizon || w.expects()) && w.failure == nil; {
		synctest.Wait()
		w.step()
		w.follow()
		if len(w.alive()) == 0 && w.rng.IntN(4) == 0 || w.steps == 0 {
			if err := w.start(); err != nil {
				return err
			}
			continue
		}
		turns.Pick(w.rng, w.choices(true)).Do()
	}
	return w.failure
}

// choices are what can happen next; stormy: time may pass though there is something to do.
func (w *world) choices(stormy bool) []turns.Choice {
	var out []turns.Choice
	for _, r := range w.requests() {
		switch {
		case w.is(cutThere, r.to.name): // it waits on the way
		case w.is(slow, r.to.name):
			out = append(out, turns.Choice{Weight: 1, What: "request", Do: func() { w.grant(r) }})
		default:
			out = append(out, turns.Choice{Weight: 20, What: "request", Do: func() { w.grant(r) }})
		}
	}
	w.watches = slices.DeleteFunc(w.watches, func(x *watching) bool { return !x.IsOpen() })
	slices.SortStableFunc(w.watches, func(a, b *watching) int { return cmp.Compare(a.key(), b.key()) })
	for _, x := range w.watches {
		switch {
		case x.to == w.hub && w.is(hubFreeze, ""):
		case x.to != w.hub && (w.is(dumb, x.to.name) || w.is(cutThere, x.to.name) || w.is(cutBack, x.to.name)):
		case len(x.Pending()) > 0:
			out = append(out, turns.Choice{Weight: 10, What: "watch", Do: func() { w.deliver(x) }})
		case x.to != w.hub && w.now().Sub(x.marked) >= bookmarkEvery:
			out = append(out, turns.Choice{Weight: 10, What: "bookmark", Do: func() { w.mark(x) }})
		}
	}
	for _, name := range w.names {
		if do := w.contend(w.members[name]); do != nil {
			out = append(out, turns.Choice{Weight: 20, What: "another hub", Do: do})
		}
		if do := w.errand(w.members[name]); do != nil {
			out = append(out, turns.Choice{Weight: 5, What: "worker", Do: do})
		}
		for _, p := range apiserver.All[*v1beta1.AdvDeployment](w.members[name].Store, parts) {
			if w.is(podSetsLate, name) {
				continue
			}
			if do := w.live(w.members[name], p); do != nil {
				out = append(out, turns.Choice{Weight: 5, What: "podSet", Do: do})
			}
		}
	}
	for _, name := range w.names {
		if do := w.accept(w.members[name]); do != nil && !stormy {
			out = append(out, turns.Choice{Weight: 1, What: "operator", Do: do})
		}
	}
	if do := w.attend(); do != nil && (stormy && !w.plan.Gated && !w.plan.Breaking || !stormy && len(out) == 0) {
		out = append(out, turns.Choice{Weight: 1, What: "user", Do: do})
	}
	if do := w.collect(); do != nil {
		out = append(out, turns.Choice{Weight: 5, What: "collector", Do: do})
	}
	if stormy && !w.plan.Orderly || len(out) == 0 {
		out = append(out, turns.Choice{Weight: 10, What: "clock", Do: func() { w.advance(w.span(), false) }})
	}
	return out
}

// span is how long time passes in a storm.
func (w *world) span() time.Duration {
	switch n := w.rng.IntN(100); {
	case n < 40:
		return oddTime + time.Duration(w.rng.IntN(50_000))*time.Microsecond
	case n < 80:
		return oddTime + time.Duration(50_000+w.rng.IntN(3_000_000))*time.Microsecond
	default:
		return oddTime + time.Duration(1_000_000+w.rng.IntN(20_000_000))*time.Microsecond
	}
}

func (w *world) deliver(x *watching) {
	x.Next()
	if x.to == w.hub && x.Resource == appSets {
		w.learn(x.replica, x.Told)
		x.replica.told.Store(x.Told)
	}
	w.heard(x)
	w.quiet("%s sees %s of %s up to %d", x.replica.Name, x.Resource, x.to.name, x.Told)
}

// mark tells a watch how far it is. Other things change in a cluster all the time.
func (w *world) mark(x *watching) {
	x.to.Version++
	x.Told = x.to.Version
	x.Bookmark()
	w.heard(x)
}

func (w *world) heard(x *watching) {
	x.marked = w.now()
	if x.Resource == parts {
		x.replica.heard[x.to.name] = w.now()
	}
}

// calm lets everything that can happen happen, until nothing does any more.
func (w *world) calm() error {
	w.heal()
	began := w.now()
	w.wrote = began
	for w.failure == nil {
		synctest.Wait()
		w.step()
		list := w.choices(false)
		turns.Pick(w.rng, list).Do()
		if still := w.now().Sub(w.wrote); still >= mostRest || still >= restTime && w.atRest() == nil {
			return w.failure
		}
		if w.steps > mostSteps || w.now().Sub(began) > mostTime {
			w.fail(fmt.Errorf("L2: no rest after %d steps and %s without faults", w.steps, w.now().Sub(began)))
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
	w.desk.Take(r)
	why := w.unreachable(r)
	if why != nil && r.abandoned.Load() {
		return // nobody waits for the answer
	}
	if why != nil {
		r.answer <- &apiserver.Answer{Err: why}
		return
	}
	if r.link != nil && (r.token != r.to.token || w.is(revoked, r.to.name)) {
		w.quiet("%s %s at %s: 401", r.replica.Name, r, r.to.name)
		if r.abandoned.Load() {
			return
		}
		r.answer <- apiserver.Refusal(apierrors.NewUnauthorized("simulated"))
		return
	}
	switch {
	case r.Verb == "watch":
		w.watch(r)
	case r.IsWrite():
		w.write(r)
	default:
		w.read(r)
	}
}

// unreachable says why nobody is there; nil: somebody is.
func (w *world) unreachable(r *request) error {
	if w.is(down, r.to.name) {
		return errRefused
	}
	if r.born != r.to.births {
		return errClosed
	}
	return nil
}

func (w *world) actor(r *request) apiserver.Actor {
	return apiserver.Actor{By: r.replica.Name, At: w.now(), Cause: r}
}

func (w *world) watch(r *request) {
	x, a := r.to.ServeWatch(r.Request, 0)
	w.quiet("%s %s at %s from %s", r.replica.Name, r, r.to.name, r.Query.Get("resourceVersion"))
	if x != nil {
		open := &watching{x, r.replica, r.to, w.now()}
		w.watches = append(w.watches, open)
		if r.link != nil {
			r.link.carry(x)
		}
		if r.Query.Get("sendInitialEvents") == "true" {
			w.heard(open)
		}
	}
	r.answer <- a
}

func (w *world) read(r *request) {
	a := r.to.Serve(r.Request, 0, w.actor(r))
	w.quiet("%s %s at %s: %d", r.replica.Name, r, r.to.name, a.Status)
	if w.is(cutBack, r.to.name) {
		return // the answer is lost
	}
	if r.Verb == "list" && r.Resource == parts && a.Status == http.StatusOK {
		r.replica.heard[r.to.name] = w.now()
	}
	r.answer <- a
}

// site is the place of the controller that a write comes from.
func (r *request) site() string {
	where := "member"
	if r.link == nil {
		where = "hub"
	}
	what := r.Resource
	if r.Sub != "" {
		what += "/" + r.Sub
	}
	return strings.Join([]string{where, r.Verb, what}, " ")
}

// sites of all writes that count, but for those of chartSites.
func sites() []string {
	return []string{"hub patch appsets", "hub patch appsets/status", "hub patch secrets", "hub create configmaps", "hub delete configmaps",
		"hub create controllerrevisions", "hub patch controllerrevisions", "hub delete controllerrevisions",
		"member patch advdeployments", "member delete advdeployments"}
}

// chartSites are those of writes that only AppSets with a chart need: archives.
func chartSites() []string {
	return []string{"hub create secrets", "hub delete secrets", "member create secrets", "member patch secrets", "member delete secrets"}
}

// write carries out a write with the fault that waits for one.
func (w *world) write(r *request) {
	site, fault := r.site(), ""
	if r.abandoned.Load() {
		if w.rng.IntN(2) == 0 {
			w.say("%s (gone) %s at %s: arrives late", r.replica.Name, r, r.to.name)
			r.to.Serve(r.Request, 0, w.actor(r))
		}
		return
	}
	counts := r.Resource != apiserver.Leases && r.Resource != apiserver.Events
	if counts {
		w.wrote = w.now()
		if i := slices.IndexFunc(w.armed, func(f Fault) bool { return f.Site == "" || f.Site == site }); i >= 0 {
			fault = w.armed[i].Kind
			w.armed = slices.Delete(w.armed, i, i+1)
		}
		w.coverage[site]++
		if fault != "" {
			w.coverage[site+" | "+fault]++
		}
	}
	w.tell(!counts, "%s %s at %s [%s] %s", r.replica.Name, r, r.to.name, site, fault)
	var a *apiserver.Answer
	switch fault {
	case crashBefore:
		w.kill(r.replica)
		a = &apiserver.Answer{Err: process.ErrDead}
	case conflict:
		a = apiserver.Refusal(apierrors.NewConflict(r.to.GroupResource(r.Resource), r.Name, fmt.Errorf("simulated")))
	case serverError:
		a = apiserver.Refusal(apierrors.NewInternalError(fmt.Errorf("simulated")))
	case tooMany:
		a = apiserver.Refusal(apierrors.NewTooManyRequests("simulated", 1))
		a.Header = http.Header{"Retry-After": {"1"}}
	default:
		a = r.to.Serve(r.Request, 0, w.actor(r))
		if a.Status >= http.StatusBadRequest {
			w.tell(!counts, "     answered %d %s", a.Status, a.Body)
		}
	}
	if r.link == nil && (a.Err != nil || a.Status >= http.StatusBadRequest || fault == lostAnswer) {
		w.hubRefused = w.now()
	}
	switch {
	case fault == crashAfter:
		w.kill(r.replica)
		a = &apiserver.Answer{Err: process.ErrDead}
	case fault == lostAnswer:
		a = &apiserver.Answer{Err: context.DeadlineExceeded}
	case w.is(cutBack, r.to.name):
		return
	}
	r.answer <- a
}
