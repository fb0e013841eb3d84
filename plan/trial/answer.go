package trial

import "time"

// Answer is what is known of a question.
type Answer struct {
	// Verdict of the last answer, which came At; empty: there is none.
	Verdict Verdict
	At      time.Time
	// Times is how many answers in a row were no yes.
	Times int
	// Words of the API server.
	Words string
	// Passed is when a write in earnest passed last.
	Passed time.Time
	// Refusal in earnest since then.
	Refusal Refusal
}

// Refusal of a write in earnest.
type Refusal struct {
	At    time.Time
	Times int // in a row; 0: there is none
	Words string
	// Pod that was refused last, and since when its gate was closed then.
	Pod    string
	Closed time.Time
}

// Answers by question.
type Answers map[Question]Answer

// Said is what the API server said.
type Said struct {
	Verdict Verdict
	Words   string
	At      time.Time
	// Pod that it was asked for, and since when its gate is closed.
	Pod    string
	Closed time.Time
}

// Tried is what is known after the answer to a dry run.
func (a Answer) Tried(s Said) Answer {
	if s.Verdict == Admitted || s.Verdict == Immutable || s.Verdict == NoRoom || s.Verdict != a.Verdict {
		a.Times = 0
	}
	a.Verdict, a.At, a.Words = s.Verdict, s.At, s.Words
	a.Times++
	return a
}

// Wrote is what is known after a write in earnest.
func (a Answer) Wrote(kind Kind, s Said) Answer {
	switch {
	case s.Verdict == Admitted && a.Verdict == NoRoom: // the next one may find no room
		a.Passed, a.Refusal = s.At, Refusal{}
	case s.Verdict == Admitted:
		return Answer{Verdict: Admitted, At: s.At, Passed: s.At}
	case s.Verdict == Immutable:
		a.Verdict, a.At, a.Words = Immutable, s.At, s.Words
	case s.Verdict == Refused || s.Verdict == NoRoom:
		a.Refusal = a.Refusal.again(s)
		if kind == Create && a.Verdict != Refused {
			// Creations are tried again by themselves: dry runs keep their own times.
			a = a.Tried(Said{Verdict: Refused, Words: s.Words, At: s.At})
		}
	}
	return a
}

// Step is what may be done now by an answer.
type Step int

// The steps.
const (
	// Ask: there is no answer that holds.
	Ask Step = iota
	// Begin what was asked for.
	Begin
	// Alone: one pod of those that are alike.
	Alone
	// Room: one alone, but where the next pod asks for no more than the one that goes.
	Room
	// Instead: the pod cannot change so, but another one may take its place.
	Instead
	// Wait, since it is refused, or had no answer.
	Wait
)

// Next says what may be done, and after how long time alone changes that.
//
// | last answer | refused in earnest | step |
// |---|---|---|
// | any | in the back-off of that, but for creations | Wait |
// | none, or older than that refusal | | Ask |
// | Admitted, Immutable, NoRoom | | Begin, Instead, Room; Ask after 60 s |
// | Admitted | before | Alone; Ask after 60 s |
// | Refused, NoAnswer, Stale | | Wait; Ask after the back-off |
func (a Answer) Next(kind Kind, now time.Time) (Step, time.Duration) {
	refused := a.Refusal.Times > 0
	if refused && kind != Create {
		if left := a.Refusal.Left(now); left > 0 {
			return Wait, left
		}
		if !a.At.After(a.Refusal.At) {
			return Ask, 0
		}
	}
	least := unansweredMin
	switch a.Verdict {
	case "":
		return Ask, 0
	case Admitted, Immutable, NoRoom:
		left := validFor - now.Sub(a.At)
		switch {
		case left <= 0:
			return Ask, 0
		case a.Verdict == Immutable:
			return Instead, left
		case a.Verdict == NoRoom:
			return Room, left
		case refused:
			return Alone, left
		}
		return Begin, left
	case Refused:
		least = backoffMin
	}
	if left := backoff(least, a.Times) - now.Sub(a.At); left > 0 {
		return Wait, left
	}
	return Ask, 0
}

// again is the refusal after one more. Those of one back-off count as one: several pods were
// on their way.
func (r Refusal) again(s Said) Refusal {
	times := r.Times + 1
	if r.Times > 0 && r.Left(s.At) > 0 {
		times = r.Times
	}
	return Refusal{At: s.At, Times: times, Words: s.Words, Pod: s.Pod, Closed: s.Closed}
}

// Left is what is left of the back-off after a refusal in earnest.
func (r Refusal) Left(now time.Time) time.Duration {
	return backoff(backoffMin, r.Times) - now.Sub(r.At)
}

// IsSince says whether the refusal came after a gate was closed, by whosever clock.
func (r Refusal) IsSince(closed time.Time) bool {
	return r.Times > 0 && (!r.At.Before(closed) || !r.Closed.Before(closed))
}

// IsOver says whether nothing of an answer holds any more.
func (a Answer) IsOver(now time.Time) bool {
	const long = 2 * backoffMax
	return now.Sub(a.At) > long && now.Sub(a.Refusal.At) > long && now.Sub(a.Passed) > long
}

// WhyWaiting are the words of what holds.
func (a Answer) WhyWaiting() string {
	if a.Refusal.Times > 0 && !a.At.After(a.Refusal.At) || a.Words == "" {
		return a.Refusal.Words
	}
	return a.Words
}
