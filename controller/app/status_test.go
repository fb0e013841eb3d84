package app

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// TestHold: a status that only tells of a rollout is held back for ten seconds;
// any other is written at once, but for a little distance from the last one.
func TestHold(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	var h statusHold
	for _, s := range []struct {
		at     float64
		moving bool
		want   time.Duration
	}{
		{0, true, 10 * time.Second},
		{4, true, 6 * time.Second},
		{5, false, 0}, // it is ready
		{6, true, 10 * time.Second},
		{16, true, 0},
	} {
		if got := max(0, h.left(at(s.at), s.moving)); got != s.want {
			t.Errorf("at %v s it waits %v, want %v", s.at, got, s.want)
		}
	}
	h = statusHold{last: at(20)}
	if got := h.left(at(20.2), false); got != 300*time.Millisecond {
		t.Errorf("soon after the last one it waits %v", got)
	}
	if got := h.left(at(20.2), true); got != 10*time.Second {
		t.Errorf("with a rollout it waits %v", got)
	}
}

// TestClaimsReady: a stored status misleads only if it is about this generation.
func TestClaimsReady(t *testing.T) {
	a := &appv1.App{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	a.Status.Conditions = []metav1.Condition{{Type: appv1.ConditionReady, Status: metav1.ConditionTrue}}
	for observed, want := range map[int64]bool{-1: false, 1: false, 2: true} {
		a.Status.ObservedGeneration = observed
		if got := claimsReady(a); got != want {
			t.Errorf("observed %d: %v", observed, got)
		}
	}
}
