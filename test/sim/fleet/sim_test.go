package fleet

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tkestack.io/tapp/test/sim/drive"
)

// TestSeeds runs seeds, and fails when what must hold does not.
func TestSeeds(t *testing.T) {
	if flags.One != 0 {
		r := Run(t, Draw(flags.One), *whole)
		if r.Failure != nil {
			if !*whole {
				r = shrink(t, r)
			}
			t.Error(r.Failure)
		}
		r.print(os.Stdout)
		return
	}
	flags.Each(t, someSeeds, func(seed int64) drive.Run {
		r := Run(t, Draw(seed), false)
		return drive.Run{Steps: r.Steps, Coverage: r.Coverage, Failure: r.Failure, Explain: func() { shrink(t, r).print(os.Stderr) }}
	})
}

// which oracle has found a failure.
func which(failure error) string {
	return regexp.MustCompile(`\b[FL][0-9]+\b|\bpreview\b`).FindString(failure.Error())
}

// mostTries of a shrinking.
const mostTries = 200

// shrink looks for a smaller plan that fails too.
func shrink(t *testing.T, failed Result) Result {
	t.Helper()
	best, tries := failed, 0
	try := func(p Plan) bool {
		if tries++; tries > mostTries {
			return false
		}
		r := Run(t, p, false)
		if r.Failure == nil || which(r.Failure) != which(failed.Failure) {
			return false
		}
		best = r
		return true
	}
	for again := true; again && tries <= mostTries; {
		again = false
		for _, horizon := range []int{best.Plan.Horizon / 2, best.Plan.Horizon * 3 / 4, best.Plan.Horizon - 10} {
			p := best.Plan
			if p.Horizon = horizon; horizon > 0 && try(p) {
				again = true
				break
			}
		}
		for i := len(best.Plan.Faults) - 1; i >= 0; i-- {
			p := best.Plan
			p.Faults = slices.Delete(slices.Clone(p.Faults), i, i+1)
			again = try(p) || again
		}
		for i := len(best.Plan.Edits) - 1; i >= 0; i-- {
			p := best.Plan
			p.Edits = slices.Delete(slices.Clone(p.Edits), i, i+1)
			again = try(p) || again
		}
	}
	return best
}

// mostLine is how much of a line people get to see.
const mostLine = 800

// print tells people of a run: what was planned, what happened, and what was wrong.
func (r Result) print(w io.Writer) {
	fmt.Fprintf(w, "seed %d, %d members, tight: %v, shared: %v, faults until step %d\n", r.Plan.Seed, r.Plan.Members, r.Plan.Tight, r.Plan.Shared, r.Plan.Horizon)
	for _, e := range r.Plan.Edits {
		fmt.Fprintf(w, "  user   %s\n", e)
	}
	for _, f := range r.Plan.Faults {
		fmt.Fprintf(w, "  fault  %s\n", f)
	}
	for _, line := range r.Trace {
		if len(line) > mostLine {
			line = strings.ToValidUTF8(line[:mostLine], "") + "..."
		}
		fmt.Fprintln(w, line)
	}
	if r.Failure != nil {
		fmt.Fprintf(w, "%v\n", r.Failure)
		return
	}
	fmt.Fprintf(w, "nothing was wrong in %d steps\n", r.Steps)
}
