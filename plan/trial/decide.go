package trial

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/message"
)

// Reasons of instances that stay as they are, since the API server refuses what would follow.
const (
	// ReasonNextPodRefused: it refuses the pod that would follow.
	ReasonNextPodRefused = "NextPodRefused"
	// ReasonImmutable: it does not change a running pod so.
	ReasonImmutable = "UpdateImmutable"
	// ReasonUnanswered: it came to no decision.
	ReasonUnanswered = "Unanswered"
	// ReasonTurn: others are asked for, or try, first.
	ReasonTurn = "WaitsForTurn"
)

// Subject is a pod that may be interrupted.
type Subject struct {
	Pod *corev1.Pod
	// Hash of the template that it is to have.
	Hash string
	// Serves: it does, or may do so. What does not serve is not asked for.
	Serves bool
	// Closed is since when its gate is; the zero time: it is open. Untouched: the containers
	// run what they did before.
	Closed    time.Time
	Untouched bool
}

// Others are the pods of the TApp that are to be updated.
type Others interface {
	// IsUnderWay says whether one of those that are alike is out of its Services.
	IsUnderWay(q Question) bool
	// MayTryInstead says whether another one than this serves that was not refused itself.
	MayTryInstead(q Question, than *corev1.Pod) bool
	// IsNextDue says whether an instance of the template is without a pod, or about to be,
	// but for the one that has this pod's name.
	IsNextDue(hash, but string) bool
}

// Do is what a plan does about a subject.
type Do int

// What a plan does.
const (
	DoBegin   Do = iota // takes the next step
	DoAsk               // asks the question
	DoWait              // leaves it as it is
	DoReopen            // opens its gate again
	DoInstead           // recreates it, if the policy lets it
)

// Decision about a subject.
type Decision struct {
	Do       Do
	Question Question
	// Left is after how long time alone changes it; 0: it does not.
	Left time.Duration
	// Reason and Why it waits, or Why there is another pod instead. Refused are the words of
	// the API server if that is why.
	Reason, Why, Refused string
	// Unanswered: it may begin as soon as the API server answers, so that it keeps its room.
	Unanswered bool
	// Refusal for which the gate opens again.
	Refusal Refusal
}

// Patch decides about a pod with a gate.
func (b *Bench) Patch(kind Kind, s Subject, others Others) Decision {
	q := b.Of(kind, s.Pod, s.Hash)
	a := b.Answer(q)
	if !s.Closed.IsZero() {
		return b.patchClosed(s, q, a)
	}
	_, _, refused := ReadGate(s.Pod)
	step, left := a.Next(kind, b.now)
	if !s.Serves && !refused && step != Instead && (step != Wait || a.Refusal.Times == 0) {
		return b.begin(q) // it is down, and only a refusal in earnest holds it
	}
	switch step {
	case Ask:
		return b.ask(q)
	case Instead:
		return Decision{Do: DoInstead, Question: q, Why: message.Quote(a.Words)}
	case Alone:
		if b.begun[q] || others.IsUnderWay(q) || refused && s.Serves && others.MayTryInstead(q, s.Pod) {
			return Decision{Do: DoWait, Question: q, Reason: ReasonTurn, Why: "the update was refused, and one instance alone tries it again"}
		}
	case Wait:
		return a.wait(q, left, ReasonUpdateRefused, "the API server refuses the update in place")
	}
	return b.begin(q)
}

// patchClosed decides about a pod whose gate is closed for an update.
func (b *Bench) patchClosed(s Subject, q Question, a Answer) Decision {
	switch {
	case a.Verdict == Immutable && s.Untouched:
		return Decision{Do: DoInstead, Question: q, Why: message.Quote(a.Words)}
	case a.Refusal.IsSince(s.Closed) && s.Untouched:
		return Decision{Do: DoReopen, Question: q, Refusal: a.Refusal}
	case a.Refusal.IsSince(s.Closed) && a.Refusal.Left(b.now) > 0: // an earlier update keeps the gate closed
		return a.wait(q, a.Refusal.Left(b.now), ReasonUpdateRefused, "the API server refuses the update in place")
	}
	return b.begin(q)
}

// Next decides about a pod that goes, so that another one can take its place.
func (b *Bench) Next(s Subject, spec *corev1.PodSpec, others Others) Decision {
	q := b.Of(Create, s.Pod, s.Hash)
	a := b.Answer(q)
	step, left := a.Next(Create, b.now)
	if step == Room && a.Refusal.Times == 0 && AsksNoMore(spec, &s.Pod.Spec) {
		return b.begin(q)
	}
	switch step {
	case Ask:
		return b.ask(q)
	case Room, Alone:
		if b.begun[q] || others.IsNextDue(s.Hash, a.Refusal.Pod) {
			return Decision{Do: DoWait, Question: q, Reason: ReasonTurn, Why: "the next pod may be refused, and one instance alone goes at a time: " + message.Quote(a.WhyWaiting())}
		}
	case Wait:
		d := a.wait(q, left, ReasonNextPodRefused, "the API server refuses the pod that would follow")
		if !s.Closed.IsZero() {
			d.Do, d.Refusal = DoReopen, Refusal{Times: 1, Words: a.WhyWaiting()}
		}
		return d
	}
	return b.begin(q)
}

// begin notes that the plan begins an interruption.
func (b *Bench) begin(q Question) Decision {
	b.begun[q] = true
	return Decision{Do: DoBegin, Question: q}
}

// ask, unless the plan does so for another pod already, or asks enough.
func (b *Bench) ask(q Question) Decision {
	_, known := b.answers[q]
	if b.asked[q] || len(b.asked) >= MaxAsked || !known && len(b.answers) >= MaxKept {
		return Decision{Do: DoWait, Question: q, Left: Timeout, Unanswered: true, Reason: ReasonTurn, Why: "its turn comes when the API server has answered for others"}
	}
	b.asked[q] = true
	return Decision{Do: DoAsk, Question: q, Unanswered: true}
}

// wait has what serves go on serving.
func (a Answer) wait(q Question, left time.Duration, reason, what string) Decision {
	words := message.Quote(a.WhyWaiting())
	d := Decision{Do: DoWait, Question: q, Left: left, Reason: reason, Why: what + ", and the instance stays as it is: " + words, Refused: words}
	if a.Refusal.Times == 0 && a.Verdict != Refused {
		d.Reason, d.Refused = ReasonUnanswered, ""
		d.Why = "whether the API server takes what follows is not known, and the instance stays as it is: " + message.Quote(a.Words)
	}
	return d
}
