// Package problem has what in a spec keeps the controller from doing what it says.
package problem

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

	concern Concern
}

// Concern is what a problem stops. The condition Stalled tells of the one that
// stops most.
type Concern int

// The concerns, the gravest first.
const (
	All       Concern = iota // no pod is created or changed
	Instances                // some instances have no usable template
	Updates                  // some instances are not updated
	Entries                  // an entry of the spec has no effect
)

// New problem of a field.
func New(of Concern, reason, field, format string, args ...any) Problem {
	return Problem{Field: field, Reason: reason, Why: message.Bound(fmt.Sprintf(format, args...)), concern: of}
}

// Gravest is the problem that stops most; of equals the first.
func Gravest(problems []Problem) Problem {
	return slices.MinFunc(problems, func(a, b Problem) int { return cmp.Compare(a.concern, b.concern) })
}
