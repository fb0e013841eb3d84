package unready

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/inplace"
)

// answersWithin is how long a kubelet may take to report what it made of a gate: it reports
// at once, and again after its sync period of ten seconds where that failed.
const answersWithin = 20 * time.Second

// Opening is the answer to an opened gate that is still to come, and for how long it is
// awaited: a pod that is Ready since before its gate opened may yet be called not Ready for
// the closing before that. The zero value: it has come, or no kubelet is that late.
func Opening(pod *corev1.Pod, now time.Time) inplace.Progress {
	opened, open := inplace.GateOpenSince(pod)
	ready := Ready(pod)
	if !open || !inplace.HasGate(pod) || ready == nil || ready.Status != corev1.ConditionTrue || !ready.LastTransitionTime.Time.Before(opened) {
		return inplace.Progress{}
	}
	left := min(answersWithin, answersWithin-now.Sub(opened))
	if left <= 0 {
		return inplace.Progress{}
	}
	return inplace.Progress{Reason: inplace.ReasonNotObserved, Why: "its gate was opened again, and the kubelet may still report that it was closed", Left: left}
}

// Soak is how long a pod that is Ready has to be so until it was for a time. No time: it has
// been, whatever the clock of its kubelet.
func Soak(pod *corev1.Pod, lasts time.Duration, now time.Time) time.Duration {
	if lasts == 0 {
		return 0
	}
	return lasts - now.Sub(Ready(pod).LastTransitionTime.Time)
}
