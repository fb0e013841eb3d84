package app

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
	Events  []Event
}

// Event is something that a user or another program does, or that goes wrong, at a step.
type Event struct {
	Step int
	Kind string
	// A and B say more: which App, which value.
	A, B int
}

func (e Event) String() string { return fmt.Sprintf("step %d: %s %d %d", e.Step, e.Kind, e.A, e.B) }

// What users do to Apps.
const (
	create   = "create"
	remove   = "delete"
	image    = "image"
	replicas = "replicas"
	env      = "env"
	port     = "port"
	rename   = "rename"
	unname   = "unname"
)

// What others do to the children of Apps.
const (
	editPort     = "somebody edits the port of a Service"
	extraKey     = "somebody adds a key to the selector of a Service"
	emptied      = "somebody empties a variable"
	rescaled     = "somebody scales a Deployment"
	childDeleted = "somebody deletes a child"
	takesName    = "somebody takes the name of a child"
	addsFields   = "others set fields of a child that the App says nothing of"
)

// What goes wrong with the next write of the controller, or with its process.
const (
	crashBefore = "crash before a write"
	crashAfter  = "crash after a write"
	lostAnswer  = "a write is done, and its answer lost"
	conflict    = "409 to a write"
	serverError = "500 to a write"
	tooMany     = "429 to a write"
	freeze      = "watches stand still"
	expire      = "watches expire"
	takesOver   = "another process takes over"
)

func writeFaults() []string {
	return []string{crashBefore, crashAfter, lostAnswer, conflict, serverError, tooMany}
}

func eventKinds() []string {
	return []string{remove, image, image, replicas, env, env, port, port, rename, rename, unname,
		editPort, editPort, extraKey, extraKey, emptied, emptied, rescaled, childDeleted, takesName, addsFields, addsFields, addsFields,
		freeze, expire, takesOver}
}

// Draw makes the plan of a seed.
func Draw(seed int64) Plan {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	p := Plan{Seed: seed, Horizon: 80 + rng.IntN(170)}
	add := func(kind string, step int) {
		p.Events = append(p.Events, Event{Step: step, Kind: kind, A: rng.IntN(100), B: rng.IntN(100)})
	}
	for app := range appNames() {
		p.Events = append(p.Events, Event{Step: rng.IntN(20), Kind: create, A: app})
	}
	for range 4 + rng.IntN(10) {
		step, kind := 20+rng.IntN(p.Horizon-20), eventKinds()[rng.IntN(len(eventKinds()))]
		add(kind, step)
		if kind == remove {
			p.Events = append(p.Events, Event{Step: step + rng.IntN(20), Kind: create, A: p.Events[len(p.Events)-1].A})
		}
	}
	for range rng.IntN(6) {
		add(writeFaults()[rng.IntN(len(writeFaults()))], rng.IntN(p.Horizon))
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return a.Step - b.Step })
	return p
}
