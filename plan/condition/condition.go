// Package condition writes conditions into statuses. Ready, Reconciling and Stalled are those
// that kstatus reads.
package condition

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/plan/message"
)

// Types and the reason that all kinds share.
const (
	reconciling = "Reconciling"
	stalled     = "Stalled"
	synced      = "Synced"
)

const (
	minWait = time.Second
	maxWait = 5 * time.Second
)

// Writer sets conditions of one status.
type Writer struct {
	Conditions *[]metav1.Condition
	// Generation that was observed.
	Generation int64
	// Now is when a condition changes that does.
	Now time.Time
}

// StatusOf a condition that holds or does not.
func StatusOf(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Set a condition. Its message is bounded.
func (w Writer) Set(kind string, is metav1.ConditionStatus, reason, text string) {
	meta.SetStatusCondition(w.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message.Bound(text),
		ObservedGeneration: w.Generation, LastTransitionTime: metav1.NewTime(w.Now)})
}

// Work is what is under way, and what is in its way.
type Work struct {
	// Waits says what is waited for, for the reason Progress; empty: nothing.
	Waits, Progress string
	// Stalled says what is in the way, for the reason Reason; empty: nothing.
	Stalled, Reason string
}

// SetWork sets Reconciling and Stalled. What is stalled is not reconciling, as kstatus has it.
func (w Writer) SetWork(work Work) {
	reason := synced
	if work.Stalled != "" {
		reason = work.Reason
	}
	if work.Waits != "" && work.Stalled == "" {
		w.Set(reconciling, metav1.ConditionTrue, work.Progress, work.Waits)
	} else {
		w.Set(reconciling, metav1.ConditionFalse, reason, "nothing is on its way")
	}
	if work.Stalled != "" {
		w.Set(stalled, metav1.ConditionTrue, reason, work.Stalled)
	} else {
		w.Set(stalled, metav1.ConditionFalse, synced, "nothing is in the way")
	}
}

// Stalled is what conditions say is in the way; empty: nothing.
func Stalled(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, stalled); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// Wait before what is in the way is looked at again: as long as it has been there, between 1 and 5 seconds.
func Wait(conditions []metav1.Condition, now time.Time) time.Duration {
	if c := meta.FindStatusCondition(conditions, stalled); c != nil {
		return min(max(minWait, now.Sub(c.LastTransitionTime.Time)), maxWait)
	}
	return minWait
}
