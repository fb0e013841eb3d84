package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Plan is all that a run depends on: equal plans give equal runs.
type Plan struct {
	Seed int64
	// Horizon is the step from which on nothing goes wrong any more.
	Horizon int
	// Members is how many clusters there are beside the hub.
	Members int
	// Tight: many units change at once, and the budget is one or two instances.
	Tight bool
	// Shared: the clusters share the ids of a podSet.
	Shared bool
	// Silent: nothing goes wrong but that members do not answer.
	Silent bool
	// Foretold: nothing goes wrong, and what the preview of each edit told is compared with
	// what happens. An edit waits until all that was asked for before has come about.
	Foretold bool
	// Grouped: the first podSet of a cluster is its canary, the second one blue, and stages are
	// about groups.
	Grouped bool
	// Gated: rollouts begin with a gate, and nobody confirms it in passing.
	Gated bool
	// Breaking: what some of the clusters are given fails, and others have not begun.
	Breaking bool
	// Charted: the AppSet is one of a chart.
	Charted bool
	// Orderly: time passes only when there is nothing else to do.
	Orderly bool
	Edits   []Edit
	Faults  []Fault
}

// Edit is something that a user does at a step.
type Edit struct {
	Step int
	App  string // key of the AppSet
	Kind string
	A, B int // say more: a cluster, a podSet, a number, an image
}

func (e Edit) String() string {
	return fmt.Sprintf("step %d: %s %s %d %d", e.Step, e.App, e.Kind, e.A, e.B)
}

// Fault is something that goes wrong at a step.
type Fault struct {
	Step int
	Kind string
	A    int // says more: a cluster, how long
	// Site is the only write site that the fault strikes; empty: any.
	Site string
}

func (f Fault) String() string {
	return fmt.Sprintf("step %d: %s %d %s", f.Step, f.Kind, f.A, f.Site)
}

// Faults of one write of the controller: the next one that it makes.
const (
	crashBefore = "crash before a write"
	crashAfter  = "crash after a write"
	lostAnswer  = "a write is done, and its answer lost"
	conflict    = "409 to a write"
	serverError = "500 to a write"
	tooMany     = "429 to a write"
)

func writeFaults() []string {
	return []string{crashBefore, crashAfter, crashBefore, crashAfter, lostAnswer, conflict, serverError, tooMany}
}

// Faults of everything else.
const (
	cutThere    = "requests to a member are lost on the way there"
	cutBack     = "answers of a member are lost on the way back"
	slow        = "a member is slow"
	dumb        = "a member is silent in its watches, and well in its probes"
	down        = "a member is down"
	revoked     = "credentials of a member are revoked"
	restored    = "a member is restored from a backup"
	rebuilt     = "a member is rebuilt under its name"
	swapped     = "the kubeconfigs of two members are swapped"
	hubRestored = "the hub is restored from a backup"
	hubFreeze   = "watches of the hub stand still"
	hubClose    = "watches of the hub are closed"
	orderly     = "the controller is told to end"
	workerLate  = "the worker of a member does nothing"
	workerWrong = "the worker of a member tells of what was"
	clockJump   = "the clock jumps"
	// podSetsLate comes beside a worker that is late, or alone: what runs follows later.
	podSetsLate = "the controllers of the podSets of a member do nothing"
	chartsGone  = "the repository of charts does not answer"
	republished = "versions of charts are published anew"
	// instanceFails counts as unavailable, and nobody asked for it.
	instanceFails = "an instance fails by itself"
	// anotherHub has registered a member, too.
	anotherHub = "another hub takes a member"
	// recordsLost comes with a crash: nobody is left who knows.
	recordsLost = "the hub loses the records of rollouts"
)

func otherFaults() []string {
	return []string{cutThere, cutThere, cutBack, slow, dumb, dumb, down, revoked, restored, rebuilt, swapped, hubRestored,
		hubFreeze, hubClose, orderly, workerLate, workerLate, workerWrong, clockJump, clockJump, instanceFails, instanceFails}
}

func editKinds() []string {
	return []string{"image", "image", "image", "image", "image", "bad image", "undo", "undo", "confirm", "confirm", "confirm", "confirm wrongly", "confirm again",
		"resume", "retry", "stages", "budget", "scale", "scale", "add cluster", "drop cluster", "drop cluster", "add podSet", "drop podSet",
		"delete", "delete", "abandon", "leave now", "orphan", "pause", "edit part", "delete part", "maintain", "serve", "unregister", "register"}
}

func appKeys() []string { return []string{"shop/web", "shop/api"} }

// Draw makes the plan of a seed.
func Draw(seed int64) Plan {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	switch {
	case seed%8 == 0:
		return drawTight(seed, rng)
	case seed%16 == 4: // each waits until its edits have come about, and takes long
		return drawForetold(seed, rng)
	}
	p := Plan{Seed: seed, Horizon: 150 + rng.IntN(350), Members: 2 + rng.IntN(4)}
	apps := appKeys()[:1]
	if rng.IntN(4) == 0 {
		apps = appKeys()
	}
	for _, app := range apps {
		p.Edits = append(p.Edits, Edit{Step: rng.IntN(30), App: app, Kind: "create"})
	}
	for range 1 + rng.IntN(9) {
		e := Edit{Step: 40 + rng.IntN(p.Horizon), App: apps[rng.IntN(len(apps))], A: rng.IntN(60), B: rng.IntN(60)}
		e.Kind = editKinds()[rng.IntN(len(editKinds()))]
		p.Edits = append(p.Edits, e)
		if e.Kind == "delete" && rng.IntN(2) == 0 {
			p.Edits = append(p.Edits, Edit{Step: e.Step + rng.IntN(60), App: e.App, Kind: "create"})
		}
	}
	for range rng.IntN(8) {
		f := Fault{Step: rng.IntN(p.Horizon), Kind: writeFaults()[rng.IntN(len(writeFaults()))], A: rng.IntN(100)}
		if rng.IntN(2) == 0 {
			f.Site = sites()[rng.IntN(len(sites()))]
		}
		p.Faults = append(p.Faults, f)
	}
	for range rng.IntN(6) {
		p.Faults = append(p.Faults, Fault{Step: rng.IntN(p.Horizon), Kind: otherFaults()[rng.IntN(len(otherFaults()))], A: rng.IntN(100)})
	}
	p.add()
	p.sort()
	return p
}

func (p *Plan) sort() {
	slices.SortStableFunc(p.Edits, func(a, b Edit) int { return a.Step - b.Step })
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return a.Step - b.Step })
}

// drawTight makes a plan in which units of many clusters change at once, instances fail by
// themselves, members fall silent, and all of that within a small budget. Nothing goes wrong
// that voids what was promised about it.
func drawTight(seed int64, rng *rand.Rand) Plan {
	p := Plan{Seed: seed, Horizon: 250 + rng.IntN(350), Members: 3 + rng.IntN(3), Tight: true}
	app := appKeys()[0]
	p.Edits = append(p.Edits, Edit{Step: rng.IntN(10), App: app, Kind: "create"})
	edits := []string{"image", "image", "image", "undo", "undo", "bad image", "scale", "pause", "resume"}
	for range 2 + rng.IntN(4) {
		p.Edits = append(p.Edits, Edit{Step: 60 + rng.IntN(p.Horizon), App: app, Kind: edits[rng.IntN(len(edits))], A: rng.IntN(60), B: rng.IntN(60)})
	}
	faults := []string{cutThere, cutBack, slow, dumb, down, workerLate, clockJump, orderly, hubFreeze, instanceFails, instanceFails, instanceFails, instanceFails, instanceFails}
	for range 2 + rng.IntN(7) {
		p.Faults = append(p.Faults, Fault{Step: 60 + rng.IntN(p.Horizon-60), Kind: faults[rng.IntN(len(faults))], A: rng.IntN(100)})
	}
	for range rng.IntN(5) {
		f := Fault{Step: rng.IntN(p.Horizon), Kind: writeFaults()[rng.IntN(len(writeFaults()))], A: rng.IntN(100)}
		if rng.IntN(3) > 0 {
			f.Site = []string{"member patch advdeployments", "hub patch controllerrevisions"}[rng.IntN(2)]
		}
		p.Faults = append(p.Faults, f)
	}
	if seed%16 == 8 {
		p.dropInChange(rand.New(rand.NewPCG(uint64(seed), 4)))
	}
	p.sort()
	return p
}

// dropInChange has podSets be dropped in the midst of a change, and some come back.
func (p *Plan) dropInChange(rng *rand.Rand) {
	app := appKeys()[0]
	for range 1 + rng.IntN(3) {
		at := 60 + rng.IntN(p.Horizon)
		p.Edits = append(p.Edits, Edit{Step: at, App: app, Kind: []string{"image", "image", "bad image"}[rng.IntN(3)], B: rng.IntN(60)})
		for range 1 + rng.IntN(3) {
			kind := "drop podSet"
			if rng.IntN(2) == 0 {
				kind += ", image"
			}
			drop := Edit{Step: at + 5 + rng.IntN(60), App: app, Kind: kind, A: rng.IntN(60), B: rng.IntN(60)}
			p.Edits = append(p.Edits, drop)
			if rng.IntN(3) == 0 {
				p.Edits = append(p.Edits, Edit{Step: drop.Step + 3 + rng.IntN(40), App: app, Kind: "add podSet", A: drop.A, B: rng.IntN(60)})
			}
		}
	}
}
