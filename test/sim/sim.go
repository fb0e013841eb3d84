// Package sim runs the controller, unchanged, against an API server in memory, in
// virtual time, with everything going wrong that can; and checks after every single
// write what must hold. One seed is one run, and equal seeds give equal runs.
//
//	plan.go       what a seed stands for: edits and faults, each at a step
//	classes.go    what only some runs have
//	schedule.go   decides what happens next: one thing at a time
//	world.go      the state of a run
//	replica.go    a process of the controller, behind a transport of ours
//	request.go    its requests to the API server, which is the room apiserver
//	kinds.go      what that serves
//	kubelet.go cluster.go users.go   who else writes
//	faults.go     what goes wrong
//	oracle.go     what must never happen
//	coverage.go lead.go   where crashes have struck, and the ways there
package sim

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
	Writes   int
	Coverage Coverage
}

// Run makes one run.
func Run(t *testing.T, p Plan, verbose bool) Result {
	t.Helper()
	var out Result
	rand.Seed(p.Seed) //nolint:staticcheck // jitter of client-go comes from the global source, with GODEBUG randseednop=0
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p)
		w.trace.verbose = verbose
		err := w.storm()
		if err == nil {
			err = w.calm()
		}
		if err == nil {
			err = w.atRest()
		}
		w.end()
		out = Result{Plan: p, Failure: err, Trace: w.trace.lines, Digest: w.trace.digest, Steps: w.steps, Coverage: w.coverage}
	})
	return out
}
