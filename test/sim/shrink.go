package sim

import (
	"regexp"
	"slices"
	"testing"
)

// mostTries of a shrinking.
const mostTries = 300

// Shrink looks for a smaller plan that fails by the same rule: an earlier end of the storm,
// and fewer edits and faults. Every try is a run of its own, and so exact.
func Shrink(t *testing.T, failed Result) Result {
	t.Helper()
	best, tries := failed, 0
	try := func(p Plan) bool {
		if tries++; tries > mostTries {
			return false
		}
		r := Run(t, p, false)
		if r.Failure == nil || ruleOf(r.Failure) != ruleOf(failed.Failure) {
			return false
		}
		best = r
		return true
	}
	for again := true; again && tries <= mostTries; {
		again = false
		for _, horizon := range []int{best.Plan.Horizon / 2, best.Plan.Horizon * 3 / 4, best.Plan.Horizon - 10, best.Plan.Horizon - 1} {
			p := best.Plan
			if p.Horizon = horizon; horizon > 0 && try(p) {
				again = true
				break
			}
		}
		for i := len(best.Plan.Classes) - 1; i >= 0; i-- {
			p := best.Plan
			p.Classes = slices.Delete(slices.Clone(p.Classes), i, i+1)
			again = try(p) || again
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

// ruleOf a failure is the name of what it breaks; empty: it has none.
func ruleOf(failure error) string {
	return regexp.MustCompile(`\b[SL][0-9]+'?: `).FindString(failure.Error())
}
