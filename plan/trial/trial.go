// Package trial decides what may be interrupted, by what the API server said of the patch
// or the pod that follows. A plan asks for a dry run of it first (Question), and is told the
// Answer with its time.
//
//	verdict.go   what an answer of the API server means
//	answer.go    what is known of a question, and what may be done by that
//	alike.go     which pods have one question
//	gate.go      what the gate of a pod tells of an update that was refused
//	bench.go     all of that, for one plan
package trial

import "time"

// Kind of a question.
type Kind string

// The kinds.
const (
	Update Kind = "Update" // a patch of the pod
	Resize Kind = "Resize" // a patch of its subresource resize
	Create Kind = "Create" // the creation of the next pod
)

// Question about all pods that are alike.
type Question struct {
	Kind Kind
	// Key of the pods: their template, the next one, and their spec.
	Key string
}

const (
	// validFor is how long a yes holds.
	validFor = time.Minute
	// Timeout of a question. A webhook may take 30 s.
	Timeout = 35 * time.Second
	// MaxAsked is how many questions one plan asks, and how many are under way at a time.
	MaxAsked = 4
	// MaxKept is how many answers are kept for one object.
	MaxKept = 1000
)

// What is refused is asked again after backoffMin, and each time after twice as long. What
// had no answer is asked again sooner.
const (
	unansweredMin = time.Second
	backoffMin    = 10 * time.Second
	backoffMax    = 5 * time.Minute
)

func backoff(least time.Duration, times int) time.Duration {
	const doublings = 9 // 1 s · 2⁹ is more than 5 min
	return min(least<<min(max(times-1, 0), doublings), backoffMax)
}
