// Package app runs the controller of Apps, unchanged, against an API server in memory that
// knows who owns which field, in virtual time, while users, other programs and faults do
// what they can; and checks after every single write what must hold. One seed is one run,
// and equal seeds give equal runs.
//
//	plan.go       what a seed stands for: edits and faults, each at a step
//	world.go      the state of a run, and what happens next
//	replica.go    a process of the controller, and its requests
//	cluster.go    what the API server serves, and the rest of the cluster
//	users.go      what users and other programs do
//	oracle.go     what must never happen, and where every run has to end
package app

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
func Run(t *testing.T, p Plan) Result {
	t.Helper()
	var out Result
	rand.Seed(p.Seed) //nolint:staticcheck // jitter of client-go comes from the global source, with GODEBUG randseednop=0
	fields, err := newFields()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p, fields)
		err := w.storm()
		if err == nil {
			err = w.calm()
		}
		w.end()
		out = Result{Plan: p, Failure: err, Trace: w.lines, Digest: w.digest, Steps: w.steps, Coverage: w.coverage}
	})
	return out
}
