// Package fleet runs the controller of AppSets, unchanged, against a hub and two to five
// member clusters in memory, in virtual time, with everything going wrong that can; and
// checks after every single write what must hold. One seed is one run, and equal seeds
// give equal runs.
//
//	plan.go       what a seed stands for: edits and faults, each at a step
//	classes.go    what only some seeds have
//	schedule.go   decides what happens next: one thing at a time
//	world.go      the state of a run
//	clusters.go   the hub and its members
//	network.go    connections between them, which can be cut
//	replica.go    a process of the controller
//	workers.go instances.go   who carries parts out in members: a small model of it
//	users.go rollouts.go faults.go   what users do, and what goes wrong
//	oracle.go promises.go silence.go   what must never happen
//	hubs.go       another hub that has members, too
//	charts.go     the repository of charts, and what members have of it
//	foretold.go shape.go    what the preview of an edit tells, and what then happens
//	told.go                 in which order
//	rest.go       where every run has to end
package fleet

import (
	"math/rand"
	"testing"
	"testing/synctest"
)

// Result of a run.
type Result struct {
	Plan     Plan
	Failure  error
	Trace    []string
	Digest   uint64
	Steps    int
	Coverage map[string]int
}

// Run makes one run.
func Run(t *testing.T, p Plan, verbose bool) Result {
	t.Helper()
	var out Result
	rand.Seed(p.Seed) //nolint:staticcheck // jitter of client-go comes from the global source, with GODEBUG randseednop=0
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p)
		w.verbose = verbose
		err := w.storm()
		if err == nil {
			err = w.calm()
		}
		if err == nil {
			err = w.atRest()
		}
		w.end()
		out = Result{Plan: p, Failure: err, Trace: w.lines, Digest: w.digest, Steps: w.steps, Coverage: w.coverage}
	})
	return out
}
