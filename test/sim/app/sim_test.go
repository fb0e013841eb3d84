package app

import (
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"tkestack.io/tapp/test/sim/drive"
)

// sites of all writes of the controller.
func sites() []string {
	return []string{"patch apps/status", "patch deployments", "patch services", "delete deployments", "delete services"}
}

// TestSeeds runs seeds, and fails when what must hold does not.
func TestSeeds(t *testing.T) {
	if flags.One != 0 {
		r := Run(t, Draw(flags.One))
		if r.Failure != nil {
			r = shrink(t, r)
			t.Error(r.Failure)
		}
		r.print(os.Stdout)
		return
	}
	flags.Each(t, someSeeds, func(seed int64) drive.Run {
		r := Run(t, Draw(seed))
		return drive.Run{Steps: r.Steps, Coverage: r.Coverage, Failure: r.Failure, Explain: func() { shrink(t, r).print(os.Stderr) }}
	})
}

// shrink looks for a plan with fewer events that fails too.
func shrink(t *testing.T, failed Result) Result {
	t.Helper()
	best := failed
	for again := true; again; {
		again = false
		for i := len(best.Plan.Events) - 1; i >= 0; i-- {
			p := best.Plan
			p.Events = slices.Delete(slices.Clone(p.Events), i, i+1)
			if r := Run(t, p); r.Failure != nil {
				best, again = r, true
			}
		}
	}
	return best
}

// print tells people of a run: what was planned, what happened, and what was wrong.
func (r Result) print(w io.Writer) {
	fmt.Fprintf(w, "seed %d, faults until step %d\n", r.Plan.Seed, r.Plan.Horizon)
	for _, e := range r.Plan.Events {
		fmt.Fprintf(w, "  %s\n", e)
	}
	for _, line := range r.Trace {
		fmt.Fprintln(w, line[:min(len(line), mostLine)])
	}
	if r.Failure != nil {
		fmt.Fprintf(w, "%v\n", r.Failure)
		return
	}
	fmt.Fprintf(w, "nothing was wrong in %d steps\n", r.Steps)
}

// mostLine is how much of a line people get to see.
const mostLine = 900
