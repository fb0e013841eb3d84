package trial

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Bench is where one plan has its steps tried.
type Bench struct {
	answers Answers
	now     time.Time
	keys    keys
	// told are refusals in earnest that gates of pods tell of.
	told map[Question]Refusal
	// asked and begun are the questions that the plan asks, and those for which it begins an
	// interruption.
	asked, begun map[Question]bool
}

// NewBench knows the answers.
func NewBench(answers Answers, now time.Time) *Bench {
	return &Bench{answers: answers, now: now, told: map[Question]Refusal{}, asked: map[Question]bool{}, begun: map[Question]bool{}}
}

// Read what the gate of a pod tells of the update to the template with this hash.
func (b *Bench) Read(pod *corev1.Pod, hash string) {
	of, refusal, told := ReadGate(pod)
	if !told || of != hash {
		return
	}
	for _, kind := range []Kind{Update, Resize} {
		q := b.Of(kind, pod, hash)
		if had := b.told[q]; refusal.At.After(had.At) {
			refusal.Times = max(refusal.Times, had.Times)
			b.told[q] = refusal
		}
	}
}

// Of is the question whether a pod may be brought to the template with this hash.
func (b *Bench) Of(kind Kind, pod *corev1.Pod, hash string) Question {
	switch {
	case kind == Create:
		return Question{Create, hash}
	case b == nil: // nothing is tried
		return Question{}
	}
	from := pod.Labels[tappv1.LabelTemplateHash]
	return Question{kind, from + " " + hash + " " + b.keys.specKey(pod, from)}
}

// Answer is what is known of a question.
func (b *Bench) Answer(q Question) Answer {
	a := b.answers[q]
	// The time in a condition has whole seconds.
	if told := b.told[q]; told.At.After(a.Passed) && told.At.After(a.Refusal.At) {
		told.Times = max(told.Times, a.Refusal.Times)
		a.Refusal = told
	}
	return a
}
