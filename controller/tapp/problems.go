package tapp

import (
	"fmt"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// maxProblems is how many problems of a spec get an event of their own.
const maxProblems = 5

// told are the problems of a generation that events told of. The planner finds
// them again with every plan.
type told struct {
	generation int64
	problems   map[plan.Problem]bool
}

// tellProblems tells what is wrong with a spec, once a generation.
func (c *Controller) tellProblems(t *tappv1.TApp, o *object, problems []plan.Problem) {
	if o.problems.generation != t.Generation {
		o.problems = told{generation: t.Generation}
	}
	for _, p := range problems {
		if o.problems.problems[p] {
			continue
		}
		if o.problems.problems == nil {
			o.problems.problems = map[plan.Problem]bool{}
		}
		o.problems.problems[p] = true
		message := p.Field + ": " + p.Why
		switch n := len(o.problems.problems); {
		case n > maxProblems:
			continue
		case n == maxProblems && len(problems) > maxProblems:
			message += fmt.Sprintf(" (and %d more problems)", len(problems)-maxProblems)
		}
		c.recorder.problem(t, p.Reason, message)
	}
}
