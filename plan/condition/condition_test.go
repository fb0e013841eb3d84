package condition

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSetWork: what is stalled is not reconciling, whatever is waited for.
func TestSetWork(t *testing.T) {
	for _, test := range []struct {
		name string
		work Work
		want string
	}{
		{"at rest", Work{Progress: "Progressing"}, "Reconciling False Synced: nothing is on its way; Stalled False Synced: nothing is in the way"},
		{"waiting", Work{Waits: "a pod", Progress: "Progressing"}, "Reconciling True Progressing: a pod; Stalled False Synced: nothing is in the way"},
		{"stalled", Work{Progress: "Progressing", Stalled: "a name", Reason: "Taken"}, "Reconciling False Taken: nothing is on its way; Stalled True Taken: a name"},
		{"both", Work{Waits: "a pod", Progress: "Progressing", Stalled: "a name", Reason: "Taken"}, "Reconciling False Taken: nothing is on its way; Stalled True Taken: a name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var conditions []metav1.Condition
			Writer{Conditions: &conditions, Generation: 3}.SetWork(test.work)
			var got []string
			for _, c := range conditions {
				got = append(got, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
				if c.ObservedGeneration != 3 {
					t.Errorf("%s has generation %d", c.Type, c.ObservedGeneration)
				}
			}
			if text := strings.Join(got, "; "); text != test.want {
				t.Errorf("got  %s\nwant %s", text, test.want)
			}
			if is := Stalled(conditions); is != test.work.Stalled {
				t.Errorf("stalled by %q", is)
			}
		})
	}
}

// TestWait: as long as it has been stalled, within bounds.
func TestWait(t *testing.T) {
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	if got := Wait(nil, now); got != minWait {
		t.Errorf("without a condition: %s", got)
	}
	for since, want := range map[time.Duration]time.Duration{0: minWait, 3 * time.Second: 3 * time.Second, time.Hour: maxWait} {
		var conditions []metav1.Condition
		Writer{Conditions: &conditions, Now: now.Add(-since)}.SetWork(Work{Stalled: "a name", Reason: "Taken"})
		if got := Wait(conditions, now); got != want {
			t.Errorf("after %s: %s, want %s", since, got, want)
		}
	}
}

// TestBound: a message of any length can be stored.
func TestBound(t *testing.T) {
	var conditions []metav1.Condition
	Writer{Conditions: &conditions}.Set("Ready", metav1.ConditionFalse, "Reason", strings.Repeat("x", 40_000))
	if n := len(conditions[0].Message); n >= 40_000 {
		t.Errorf("it has %d bytes", n)
	}
}
