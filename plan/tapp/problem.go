package tapp

import (
	"cmp"
	"fmt"
	"slices"

	"tkestack.io/tapp/plan/message"
)

// Problem is something in a spec that the controller cannot do.
type Problem struct {
	// Field path, for example spec.templates[3].
	Field string
	// Reason in CamelCase.
	Reason string
	// Why is one sentence that says what is wrong and what to do.
	Why string

	concern concern
}

// concern is what a problem stops. The condition Stalled tells of the one that
// stops most.
type concern int

const (
	concernsAll       concern = iota // no pod is created or changed
	concernsInstances                // some instances have no usable template
	concernsUpdates                  // some instances are not updated
	concernsEntries                  // an entry of the spec has no effect
)

func newProblem(of concern, reason, field, format string, args ...any) Problem {
	return Problem{Field: field, Reason: reason, Why: message.Bound(fmt.Sprintf(format, args...)), concern: of}
}

// gravest is the problem that stops most; of equals the first.
func gravest(problems []Problem) Problem {
	return slices.MinFunc(problems, func(a, b Problem) int { return cmp.Compare(a.concern, b.concern) })
}
