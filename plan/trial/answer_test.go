package trial

import (
	"testing"
	"time"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// TestNext: a history of answers, each so many seconds after the one before, and what may
// be done how long after the last one.
func TestNext(t *testing.T) {
	type said struct {
		after     int
		inEarnest bool
		verdict   Verdict
	}
	dry := func(after int, v Verdict) said { return said{after, false, v} }
	earnest := func(after int, v Verdict) said { return said{after, true, v} }
	for _, c := range []struct {
		about   string
		kind    Kind
		history []said
		after   int
		want    Step
		left    int
	}{
		{"nothing", Update, nil, 0, Ask, 0},
		{"yes", Update, []said{dry(0, Admitted)}, 59, Begin, 1},
		{"yes, a minute ago", Update, []said{dry(0, Admitted)}, 60, Ask, 0},
		{"yes by a write", Update, []said{dry(0, Admitted), earnest(30, Admitted)}, 59, Begin, 1},
		{"immutable", Update, []said{dry(0, Immutable)}, 59, Instead, 1},
		{"immutable, a minute ago", Update, []said{dry(0, Immutable)}, 60, Ask, 0},
		{"immutable in earnest", Update, []said{dry(0, Admitted), earnest(1, Immutable)}, 1, Instead, 59},
		{"no", Update, []said{dry(0, Refused)}, 9, Wait, 1},
		{"no, ten seconds ago", Update, []said{dry(0, Refused)}, 10, Ask, 0},
		{"no, twice", Update, []said{dry(0, Refused), dry(10, Refused)}, 19, Wait, 1},
		{"no, ten times", Update, []said{dry(0, Refused), dry(9, Refused), dry(9, Refused), dry(9, Refused), dry(9, Refused), dry(9, Refused), dry(9, Refused)}, 299, Wait, 1},
		{"no, then yes, then no", Update, []said{dry(0, Refused), dry(10, Refused), dry(20, Admitted), dry(60, Refused)}, 10, Ask, 0},
		{"no answer", Update, []said{dry(0, NoAnswer)}, 0, Wait, 1},
		{"no answer, a second ago", Update, []said{dry(0, NoAnswer)}, 1, Ask, 0},
		{"no answer after a no", Update, []said{dry(0, Refused), dry(10, Refused), dry(20, NoAnswer)}, 1, Ask, 0},
		{"stale", Update, []said{dry(0, Stale)}, 1, Ask, 0},
		{"refused in earnest", Update, []said{dry(0, Admitted), earnest(1, Refused)}, 9, Wait, 1},
		{"refused in earnest, and not asked since", Update, []said{dry(0, Admitted), earnest(1, Refused)}, 10, Ask, 0},
		{"refused in earnest, and a yes since", Update, []said{dry(0, Admitted), earnest(1, Refused), dry(10, Admitted)}, 1, Alone, 59},
		{"refused in earnest twice", Update, []said{dry(0, Admitted), earnest(1, Refused), dry(10, Admitted), earnest(1, Refused)}, 19, Wait, 1},
		{"several at once, refused in earnest", Update, []said{dry(0, Admitted), earnest(1, Refused), earnest(0, Refused), earnest(0, Refused)}, 10, Ask, 0},
		{"passed at last", Update, []said{dry(0, Admitted), earnest(1, Refused), dry(10, Admitted), earnest(1, Admitted)}, 1, Begin, 59},
		{"a quota is full", Create, []said{dry(0, NoRoom)}, 0, Room, 60},
		{"a pod was made in a full quota", Create, []said{dry(0, NoRoom), earnest(1, Admitted)}, 0, Room, 59},
		{"a creation was refused", Create, []said{earnest(0, Refused)}, 9, Wait, 1},
		{"a creation was refused by a quota", Create, []said{earnest(0, NoRoom)}, 9, Wait, 1},
		{"a creation is refused again and again", Create, []said{earnest(0, Refused), earnest(5, Refused)}, 5, Ask, 0},
		{"a creation was refused, and a dry run passed", Create, []said{earnest(0, Refused), dry(10, Admitted)}, 1, Alone, 59},
		{"a creation passed after all", Create, []said{earnest(0, Refused), earnest(5, Admitted)}, 1, Begin, 59},
	} {
		a, at := Answer{}, now
		for _, s := range c.history {
			at = at.Add(time.Duration(s.after) * time.Second)
			if said := (Said{Verdict: s.verdict, At: at}); s.inEarnest {
				a = a.Wrote(c.kind, said)
			} else {
				a = a.Tried(said)
			}
		}
		step, left := a.Next(c.kind, at.Add(time.Duration(c.after)*time.Second))
		if step != c.want || left != time.Duration(c.left)*time.Second {
			t.Errorf("%s: step %d, %s left, want %d and %d s", c.about, step, left, c.want, c.left)
		}
	}
}
