package sim

import (
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// A process acts on what it has seen, which is never quite what is. What it may be
// blamed for is judged by what it can have believed: the state at one of the versions
// from the one that its caches showed when it made its plan, to the one at which it
// asked for the write, which a live read can have shown.

// belief of a process about one TApp, as it was when a chain of its requests began: a
// sync makes them, one after the other or side by side, without virtual time between
// an answer and what follows from it.
type belief struct {
	// told are the versions that the caches showed, by resource.
	told map[string]int64
	at   time.Time
	// out are the instances that the chain has taken out of service, and by which
	// versions.
	out map[string]int64

	waiting int // requests without an answer
	step    int // of the last answer
	last    time.Time
	// again is until when a request may come again that was told to wait: client-go
	// does that by itself.
	again time.Time
}

// goesOn says whether a request may follow from the last answer.
func (b *belief) goesOn(step int, issued time.Time) bool {
	return b.step >= step-1 && !issued.After(b.last)
}

// appOf a request: the key of the TApp whose sync made it; empty for requests of no TApp,
// and for lists, which do not say whose they are (see join), and dry runs, which syncs do not wait for.
func (w *world) appOf(r *request) string {
	if r.Verb == "list" || r.IsDry() {
		return ""
	}
	key := r.Key()
	if r.Verb == "create" && r.Resource != events {
		if o, err := w.Decode(r.Resource, r.Body); err == nil {
			key = apiserver.KeyOf(r.Namespace, o.GetName())
		}
	}
	switch r.Resource {
	case tapps:
		return key
	case pods, claims, revisions:
		app, _ := stem(instanceOf(key))
		return app
	}
	return ""
}

// attribute gives a request that has just come the belief that it was made on.
func (w *world) attribute(r *request) {
	app := w.appOf(r)
	if r.belief != nil || len(r.joined) > 0 {
		return
	}
	if app == "" {
		w.join(r)
		return
	}
	b := w.chain(r, app)
	b.waiting++
	r.belief = b
}

// chain of requests about a TApp that a request belongs to, or begins.
func (w *world) chain(r *request, app string) *belief {
	b := r.replica.beliefs[app]
	if b == nil || b.waiting == 0 && !b.goesOn(w.steps, r.issued) && r.issued.After(b.again) {
		b = &belief{told: map[string]int64{}, at: r.issued, out: map[string]int64{}}
		for resource, version := range r.replica.told {
			b.told[resource] = version
		}
		r.replica.beliefs[app] = b
	}
	return b
}

// join notes that a live list may be a part of any chain that is going on. A sync that has
// looked at its caches, and has not written yet, reads nodes for the sake of pods, workloads
// for that of claims which they may have made, and revisions for that of pods which come as
// they were: a chain may begin with that.
func (w *world) join(r *request) {
	for _, app := range appKeys() {
		b := r.replica.beliefs[app]
		switch {
		case r.Verb == "get" && r.Resource == nodes && w.wereOn(r.Name, app), r.Verb == "get" && r.Resource == statefulSets && mayContest(app, r),
			r.Verb == "list" && r.Resource == revisions && r.Namespace == path.Dir(app) && r.Query.Get("labelSelector") == tappv1.LabelTApp+"="+path.Base(app):
			b = w.chain(r, app)
		case r.Verb != "list" || b == nil || b.waiting == 0 && !b.goesOn(w.steps, r.issued):
			continue
		}
		b.waiting++
		r.joined = append(r.joined, b)
	}
}

// wereOn says whether pods of a TApp are on a node, or were.
func (w *world) wereOn(node, app string) bool {
	return slices.ContainsFunc(w.Tables[pods].History, func(c *change) bool {
		of, _ := stem(c.Key())
		return of == app && c.Object().(*corev1.Pod).Spec.NodeName == node
	})
}

// postponed notes that a request was told to come again.
func (w *world) postponed(r *request) {
	if r.belief != nil {
		r.belief.again = w.now().Add(5 * time.Second)
	}
}

// answered notes that a request has got its answer, or never will.
func (w *world) answered(r *request) {
	if r.settled {
		return
	}
	r.settled = true
	for _, b := range append(slices.Clone(r.joined), r.belief) {
		if b != nil {
			b.waiting--
			b.step, b.last = w.steps, w.now()
		}
	}
}

// versionsOf an object between the one that was believed in and the write that is
// judged, the newest last; nil stands for its absence.
func versionsOf[T object](o *oracle, resource, key string, b *belief) []T {
	var out []T
	var zero T
	current, has := zero, false
	for _, c := range o.w.Tables[resource].History {
		if c.Version >= o.judged {
			break
		}
		if c.Key() != key {
			continue
		}
		if c.Version > b.told[resource] {
			out = append(out, current)
		}
		current, has = zero, c.After != nil
		if has {
			current = c.After.(T)
		}
	}
	return append(out, current)
}

// appsSeen are the versions of a TApp that were believed in, but for its absence.
func (o *oracle) appsSeen(key string, b *belief) []*tappv1.TApp {
	var out []*tappv1.TApp
	for _, t := range versionsOf[*tappv1.TApp](o, tapps, key, b) {
		if t != nil {
			d := *t
			d.Spec = *t.Spec.DeepCopy()
			tappv1.Default(&d)
			out = append(out, &d)
		}
	}
	return out
}

// podsSeen are the versions of a pod, that very one, that were believed in.
func (o *oracle) podsSeen(pod *corev1.Pod, b *belief) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range versionsOf[*corev1.Pod](o, pods, keyOf(pod), b) {
		if p != nil && p.UID == pod.UID {
			out = append(out, p)
		}
	}
	return out
}
