package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
	"tkestack.io/tapp/test/sim/turns"
)

// world is one run: a cluster, the processes of the controller, and a scheduler that
// decides what happens next.
type world struct {
	*kubelets
	plan   Plan
	rng    *rand.Rand
	drafts map[string]*tappv1.TApp
	began  time.Time
	clock  *turns.Clock
	steps  int
	mood   mood
	// quota is how many pods the namespace may have; below 0: any number.
	quota int
	// policyOf is which policy for pods is in force, or was last.
	policyOf int

	replicas []*replica
	started  int
	watches  []*watching

	desk *turns.Desk[*request]

	wrote time.Time // when the controller last tried to
	armed []Fault   // faults of writes that wait for one
	until map[string]int
	// tampered are the pods whose hash somebody changed: what a template no longer
	// sets may stay on them.
	tampered map[types.UID]bool
	trace    *trace
	oracle   *oracle
	coverage Coverage
	failure  error
}

// mood is how much more often some things happen than others in a run.
type mood struct{ requests, watches, kubelets, errands, clock int }

func newWorld(p Plan) *world {
	rng := rand.New(rand.NewPCG(uint64(p.Seed), 2))
	weigh := func() int { return []int{1, 5, 20}[rng.IntN(3)] }
	w := &world{plan: p, rng: rng, began: time.Now(), clock: &turns.Clock{}, desk: turns.NewDesk[*request](), until: map[string]int{}, tampered: map[types.UID]bool{}, coverage: Coverage{}, quota: -1}
	w.mood = mood{requests: 5 + weigh(), watches: weigh(), kubelets: weigh(), errands: weigh(), clock: 1 + weigh()/4}
	server := apiserver.New(w.now, kinds())
	w.kubelets = &kubelets{Server: server, sandboxes: map[types.UID]*sandbox{}, down: map[string]bool{}, slow: rng.IntN(3) == 0, classes: p.Classes}
	w.drafts = drafts(p)
	w.trace = &trace{began: w.began}
	w.oracle = newOracle(w)
	server.Watchers = append(server.Watchers, w.see)
	server.Admit, server.AdmitUpdate, server.Fits = w.admit, w.admitUpdate, w.fits
	for _, name := range nodeNames() {
		w.addNode(name)
	}
	return w
}

func (w *world) now() time.Time { return time.Now() }

func (w *world) addNode(name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: w.Second()}}
	_, _ = w.Create(nodes, n, w.as("node"))
}

// see is told of every step of every object.
func (w *world) see(c *change) {
	w.trace.change(w.steps, c)
	if err := w.oracle.judge(c); err != nil {
		w.fail(err)
	}
}

func (w *world) fail(err error) {
	if w.failure == nil {
		w.failure = fmt.Errorf("step %d, after %s: %w", w.steps, w.now().Sub(w.began), err)
		w.trace.say(w.steps, w.now(), "FAILURE: %v", err)
	}
}

// requests that wait, with what each was made on.
func (w *world) requests() []*request {
	out := w.desk.Waiting(func(r *request) bool {
		if r.abandoned.Load() {
			w.answered(r)
		}
		return r.abandoned.Load() && !r.IsWrite()
	})
	for _, r := range out {
		w.attribute(r)
	}
	return out
}

func (w *world) done(r *request) {
	w.desk.Take(r)
	w.answered(r)
}

func (w *world) alive() []*replica { return process.Alive(w.replicas) }

// kill crashes a process: its requests get no answer, and may still arrive.
func (w *world) kill(r *replica) {
	w.trace.say(w.steps, w.now(), "%s crashes", r.Name)
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

// advance lets time pass: that much, or, unless it is whole, until something asks for an
// answer.
func (w *world) advance(d time.Duration, whole bool) {
	if whole {
		w.clock.Advance(w.now().Add(d), nil)
		return
	}
	w.desk.Advance(w.clock, d)
}
