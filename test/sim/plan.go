package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Plan is all that a run depends on: equal plans give equal runs.
type Plan struct {
	Seed int64
	// Horizon is the step from which on nothing goes wrong any more.
	Horizon int
	Edits   []Edit
	Faults  []Fault
	// Claims and Requests say that the TApp has claim templates, and requests that may
	// change in place.
	Claims, Requests bool
	// Classes of what is worse than in other runs.
	Classes []string
}

// Fault is something that goes wrong at a step.
type Fault struct {
	Step int
	Kind string
	// A says more: a node, a pod, how long.
	A int
	// Site is the only write site that the fault strikes; empty: any.
	Site string
}

func (f Fault) String() string {
	if f.Site != "" {
		return fmt.Sprintf("step %d: %s (%s)", f.Step, f.Kind, f.Site)
	}
	return fmt.Sprintf("step %d: %s %d", f.Step, f.Kind, f.A)
}

// Faults of one write of the controller: the next one that it makes.
const (
	crashBefore  = "crash before a write"
	crashAfter   = "crash after a write"
	lostWrite    = "a write is lost, and times out"
	lostAnswer   = "a write is done, and its answer lost"
	lateWrite    = "a write is done long after its process gave up"
	conflict     = "409 to a write"
	tooMany      = "429 to a write"
	serverError  = "500 to a write"
	serverAway   = "503 to a write"
	writeTimeout = "504 to a write"
	// A pod without a grace period is stamped, and then removed, with two writes.
	halfRemoved = "504 to a write, and a pod that it removes is only stamped"
)

func writeFaults() []string {
	return []string{crashBefore, crashAfter, lostWrite, lostAnswer, lateWrite, conflict, tooMany, serverError, serverAway, writeTimeout}
}

// Faults of everything else.
const (
	secondLeader  = "a second leader"
	orderly       = "the controller is told to end"
	staleReads    = "reads are old"
	watchFreeze   = "watches stand still"
	watchExpire   = "watches expire"
	watchClose    = "watches are closed"
	nodeSilent    = "a node is silent"
	nodeGone      = "a node is deleted"
	nodeTainted   = "a node is out of service"
	quotaFull     = "the quota is full"
	clockJump     = "the clock jumps"
	evicted       = "a pod is evicted"
	containerEnds = "a container restarts"
	podEnds       = "a pod ends"
	foreignDelete = "somebody deletes a pod"
	foreignForce  = "somebody deletes a pod by force"
	foreignAdopt  = "somebody adopts a pod"
	foreignOrphan = "somebody orphans a pod"
	foreignLabel  = "somebody changes the labels of a pod"
	foreignPod    = "somebody takes the name of a pod"
	// Faults that only runs of some class have.
	claimDeleted    = "somebody deletes a claim"
	claimLetGo      = "somebody lets a claim go that is being deleted"
	podHeld         = "somebody puts a finalizer on a pod"
	collectorStands = "the garbage collector stands still"
	nodeLost        = "a node is lost for good"
	podHangs        = "a pod that is being deleted hangs"
	kubeletRestarts = "a kubelet restarts"
	revisionDeleted = "somebody deletes a revision"
	takenAway       = "a kubelet takes a pod away"
	podsRefused     = "kubelets refuse pods"
	disrupted       = "a pod is to be evicted, and deleted later"
	endStored       = "a former version stored an end"
	rivalComes      = "another workload makes claims of our names"
	claimByHand     = "somebody makes a claim of our name"
	claimUnmarked   = "a claim loses its mark"
	claimOfNamesake = "a claim has the mark of a dead namesake"
	claimOfOther    = "a claim has the mark of another"
)

func otherFaults() []string {
	return []string{secondLeader, orderly, staleReads, watchFreeze, watchFreeze, watchExpire, watchClose,
		nodeSilent, nodeGone, nodeTainted, nodeTainted, quotaFull, clockJump,
		evicted, containerEnds, podEnds, foreignDelete, foreignForce, foreignAdopt, foreignOrphan, foreignLabel, foreignPod}
}

// appKeys of the TApps of a run: the names of the second's pods begin like the
// first's, and the third is the first one's namesake in another namespace.
func appKeys() []string { return []string{"shop/web", "shop/web-1", "yard/web"} }

// Draw makes the plan of a seed. with is the class of faults that it has, or any, and without
// the one that it has not; both may be empty.
func Draw(seed int64, with, without string) Plan {
	p := drawCommon(seed)
	p.drawClasses(with, without)
	p.sort()
	return p
}

func (p *Plan) sort() {
	slices.SortStableFunc(p.Edits, func(a, b Edit) int { return a.Step - b.Step })
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return a.Step - b.Step })
}

// drawCommon draws what no class is about.
func drawCommon(seed int64) Plan {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	p := Plan{Seed: seed, Horizon: 150 + rng.IntN(350)}
	apps := appKeys()[:1]
	if rng.IntN(6) == 0 {
		apps = appKeys()[:2]
	}
	for _, app := range apps {
		p.Edits = append(p.Edits, Edit{Step: rng.IntN(10), App: app, Kind: "create"})
	}
	for range 2 + rng.IntN(7) {
		e := Edit{Step: 40 + rng.IntN(p.Horizon), App: apps[rng.IntN(len(apps))], A: rng.IntN(60), B: rng.IntN(60)}
		e.Kind = editKinds()[rng.IntN(len(editKinds()))]
		p.Edits = append(p.Edits, e)
		if e.Kind == "delete" && rng.IntN(2) == 0 {
			p.Edits = append(p.Edits, Edit{Step: e.Step + rng.IntN(60), App: e.App, Kind: "create"})
		}
	}
	for range rng.IntN(12) {
		f := Fault{Step: rng.IntN(p.Horizon), Kind: writeFaults()[rng.IntN(len(writeFaults()))], A: rng.IntN(100)}
		if rng.IntN(2) == 0 {
			f.Site = expected()[rng.IntN(len(expected()))]
		}
		if f.Kind == writeTimeout && f.A%2 == 0 {
			f.Kind = halfRemoved
		}
		p.Faults = append(p.Faults, f)
	}
	for range rng.IntN(8) {
		p.Faults = append(p.Faults, Fault{Step: rng.IntN(p.Horizon), Kind: otherFaults()[rng.IntN(len(otherFaults()))], A: rng.IntN(100)})
	}
	p.sort()
	if list := points(); rng.IntN(4) == 0 {
		p = p.Toward(list[rng.IntN(len(list))])
	}
	return p
}

// drafts are the TApps as users first create them.
func drafts(p Plan) map[string]*tappv1.TApp {
	out := map[string]*tappv1.TApp{}
	for i, key := range appKeys() {
		out[key] = draft(rand.New(rand.NewPCG(uint64(p.Seed), uint64(10+i))), key, p)
		p.shape(key, out[key])
	}
	return out
}
