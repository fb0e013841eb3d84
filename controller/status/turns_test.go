package status

import (
	"testing"
	"time"
)

// TestTurns: where writes take long, deferrable statuses take turns, and none waits for its
// turn for ever.
func TestTurns(t *testing.T) {
	p := newTurns()
	start := time.Now()
	const second = time.Second
	expect := func(n int, at, want time.Duration) {
		t.Helper()
		for range n {
			if got := p.next(start.Add(at), second).Sub(start).Round(time.Microsecond); got != want {
				t.Errorf("asked for at %s: its turn is at %s, want %s", at, got, want)
			}
		}
	}
	expect(2*turnBurst, 0, second) // nothing was written yet
	p.wrote(100 * time.Millisecond)
	expect(turnBurst, second, 2*second)
	expect(1, second, 3*second)
	expect(1, second, 5*second)
	expect(1, 2*second, 7*second)
	expect(3, 13*second, 14*second) // three are spare again
	expect(1, 13*second, 15*second)

	p.wrote(time.Hour)
	expect(turnBurst, 100*second, 101*second)
	for wait := turnInterval; wait <= turnTimeout; wait += turnInterval {
		expect(1, 100*second, 100*second+wait)
	}
	expect(9, 100*second, 100*second+turnTimeout) // and no longer
	expect(1, 110*second, 165*second)             // no turn was lost by that

	p.wrote(time.Millisecond) // what writes took is no burden when they are fast again
	expect(1, 111*second, 112*second)
}
