package fleet

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/fleet/health"
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

// told is an owner that notes which states it is told of, and when.
type told struct {
	began time.Time
	is    []string
}

func (o *told) identity() types.UID                        { return "" }
func (o *told) contact(context.Context, types.UID) error   { return nil }
func (o *told) partChanged(*session, types.NamespacedName) {}
func (o *told) changed(s *session) {
	state, _, _, _ := s.health()
	o.is = append(o.is, fmt.Sprintf("%s after %s", state, time.Since(o.began)))
}

// A member is Offline in time, also while a probe waits for an answer that does not come.
func TestOfflineWhileProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &told{began: time.Now()}
		s := &session{owner: o, clock: clock.RealClock{}}
		silent := health.Result{Outcome: health.Silent}
		s.machine.Probed(o.began, o.began, silent)
		for range health.OfflineFailures - 1 {
			time.Sleep(probeEvery)
			s.machine.Probed(time.Now(), time.Now(), silent)
		}
		time.Sleep(health.OfflineAfter - time.Second - time.Since(o.began))
		pass(t.Context(), s, time.After(probeTimeout)) // the last probe
		if want := fmt.Sprintf("[Offline after %s]", health.OfflineAfter); fmt.Sprint(o.is) != want {
			t.Errorf("told was %s, want %s", o.is, want)
		}
	})
}
