package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// Probes begin at an even pace, however long they take, and never one right after the other.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{clock: clock.RealClock{}, every: probeEvery}
		for took, want := range map[time.Duration]time.Duration{
			0: probeEvery, probeTimeout: probeEvery - probeTimeout, probeEvery - time.Millisecond: probeEvery / 5, 3 * probeEvery: probeEvery / 5,
		} {
			now := time.Now()
			s.rest(t.Context(), now.Add(probeEvery-took))
			if rested := time.Since(now); rested != want {
				t.Errorf("after a probe of %s it rests %s, want %s", took, rested, want)
			}
		}
	})
}
