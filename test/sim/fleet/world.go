package fleet

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
	"tkestack.io/tapp/test/sim/turns"
)

// world is one run: a hub and its members, the processes of the controller, and a
// scheduler that decides what happens next.
type world struct {
	plan  Plan
	rng   *rand.Rand
	clock *turns.Clock
	began time.Time

	// Processes that dial read these, too, whenever their timers end.
	mu    sync.RWMutex
	steps int
	until map[string]int // faults that last, until a step
	// archives of charts that were fetched, with their places, and how often their versions
	// were published.
	archives  map[string]string
	published int

	hub     *cluster
	members map[string]*cluster
	names   []string // of the members, in order
	// runs is what the workers of the members run, by the UID of the part.
	runs map[types.UID]*running
	// units of parts, and how often members were restored, which uses versions again.
	units    map[string][]podset.Unit
	restores int
	// kept are the identities that registrations ever had, by cluster.
	kept map[string]map[types.UID]bool
	// deeds are what users did to AppSets, by their UID.
	deeds map[types.UID]*deed
	// promises are what users were promised about the rollouts of an AppSet, by its name.
	promises map[string]*promise
	// foreseen is what was told of the last edit of an AppSet, by its name, and due the number
	// of edits that were made. Only runs in which all is foretold have them.
	foreseen map[string]*foreseen
	due      int
	// lost says that the hub was restored from a backup, and so may lack AppSets.
	lost bool
	// forgot says that the hub lost the records of rollouts.
	forgot bool

	replicas []*replica
	started  int
	watches  []*watching

	desk *turns.Desk[*request]

	wrote time.Time // when the controller last tried to, but for Leases
	// hubRefused is when the hub last did not do what it was asked for.
	hubRefused time.Time
	armed      []Fault
	coverage   map[string]int
	failure    error

	verbose bool
	lines   []string
	digest  uint64
}

// watching is an open watch of a process.
type watching struct {
	*apiserver.Watch
	replica *replica
	to      *cluster
	marked  time.Time // when it was last told how far it is
}

func (x *watching) key() string { return x.replica.Name + " " + x.to.name + " " + x.Resource }

func newWorld(p Plan) *world {
	w := &world{plan: p, rng: rand.New(rand.NewPCG(uint64(p.Seed), 2)), clock: &turns.Clock{}, began: time.Now(), desk: turns.NewDesk[*request](),
		members: map[string]*cluster{}, names: memberNames(p.Members), runs: map[types.UID]*running{}, units: map[string][]podset.Unit{}, promises: map[string]*promise{}, foreseen: map[string]*foreseen{}, kept: map[string]map[types.UID]bool{},
		deeds: map[types.UID]*deed{}, until: map[string]int{}, archives: map[string]string{}, coverage: map[string]int{}}
	w.hub = &cluster{name: "hub"}
	w.build(w.hub)
	for _, name := range w.names {
		c := &cluster{name: name, token: "token-of-" + name}
		w.members[name] = c
		w.build(c)
		w.register(c)
	}
	return w
}

func (w *world) now() time.Time { return time.Now() }

func (w *world) as(who string) apiserver.Actor { return apiserver.Actor{By: who, At: w.now()} }

// see is told of every step of every object.
func (w *world) see(c *cluster, change *apiserver.Change) {
	verb := map[bool]string{true: "is made"}[change.Before == nil]
	if change.After == nil {
		verb = "is gone"
	}
	w.tell(change.Resource == apiserver.Leases, "     %s: %d %s %s by %s%s", c.name, change.Version, apiserver.NameOf(change.Resource, change.Object()), verb, change.By, describe(change.Object()))
	if err := w.judge(c, change); err != nil {
		w.fail(err)
	}
}

func describe(o object) string {
	out := ""
	if o.GetDeletionTimestamp() != nil {
		out = " dying"
	}
	switch o := o.(type) {
	case *v1beta1.AppSet:
		s := o.Status.AggrStatus
		out += fmt.Sprintf(" generation %d/%d %s %d/%d", o.Status.ObservedGeneration, o.Generation, s.Status, s.Available, s.Desired)
		if r := o.Status.Rollout; r != nil {
			out += fmt.Sprintf(" rollout %s %s %s: %s", r.ID, r.State, r.Stage, r.Message)
		}
	case *appsv1.ControllerRevision:
		out += " " + o.Annotations[v1beta1.AnnotationRecord]
	case *v1beta1.AdvDeployment:
		s := o.Status.AggrStatus
		out += fmt.Sprintf(" generation %d/%d %d/%d", o.Status.ObservedGeneration, o.Generation, s.Available, s.Desired)
		for i := range o.Spec.Topology.PodSets {
			p := &o.Spec.Topology.PodSets[i]
			out += fmt.Sprintf(" %s %s %s", p.Name, p.Replicas, p.Revision)
			if p.MaxUnavailable != nil && p.Ceiling != nil {
				out += fmt.Sprintf(" grant %d of %d", *p.MaxUnavailable, *p.Ceiling)
			}
		}
	}
	return out
}

func (w *world) fail(err error) {
	if w.failure == nil {
		w.failure = fmt.Errorf("step %d, after %s: %w", w.steps, w.now().Sub(w.began), err)
		w.say("FAILURE: %v", err)
	}
}

// say and quiet tell of what happened. Both count for what a run was.
func (w *world) say(format string, args ...any)   { w.tell(false, format, args...) }
func (w *world) quiet(format string, args ...any) { w.tell(true, format, args...) }

func (w *world) tell(quiet bool, format string, args ...any) {
	line := fmt.Sprintf("%4d %12s  %s", w.steps, w.now().Sub(w.began), fmt.Sprintf(format, args...))
	h := fnv.New64a()
	_, _ = io.WriteString(h, line)
	w.digest = w.digest*31 + h.Sum64()
	if !quiet || w.verbose {
		w.lines = append(w.lines, line)
	}
}

// is says whether a fault of a member is on.
func (w *world) is(kind, member string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.until[kind+member] > w.steps
}

// last has a fault of a member go on for so many steps.
func (w *world) last(kind, member string, steps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until[kind+member] = w.steps + steps
}

// lift all faults that last.
func (w *world) lift() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = map[string]int{}
}

// step on.
func (w *world) step() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
}

// requests that wait. What nobody waits for any more is lost on the way, or was a read.
func (w *world) requests() []*request {
	return w.desk.Waiting(func(r *request) bool {
		return r.abandoned.Load() && (!r.IsWrite() || w.is(cutThere, r.to.name) || r.born != r.to.births)
	})
}

func (w *world) alive() []*replica { return process.Alive(w.replicas) }

// kill crashes a process: its requests get no answer, and may still arrive.
func (w *world) kill(r *replica) {
	w.say("%s crashes", r.Name)
	r.crash()
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
