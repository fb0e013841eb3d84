// Package unready says why an instance whose pod is there is not available. It is asked
// when nothing holds the instance's update: who holds that (spec.paused, a policy, the
// budget) tells of it.
package unready

import (
	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/ending"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/message"
)

// row of the table: the reason, in CamelCase, and a sentence; no reason: it does not hold.
type row func(pod *corev1.Pod, update inplace.Progress) (reason, why string)

// table has the best reason first: what is nearer to the cause. A pod without a node has no
// container, and a container that cannot start is never ready.
func table() []row {
	return []row{noNode, notObserved, failingUpdate, failingContainer, unfinishedUpdate, waitingContainer, closedGate, notReadyForLong, notReady}
}

// Why a pod is not available, by the first row of the table that holds. Update is how far
// a change of the pod has come that is under way; the zero value is none.
func Why(pod *corev1.Pod, update inplace.Progress) (reason, why string) {
	for _, row := range table() {
		if reason, why = row(pod, update); reason != "" {
			break
		}
	}
	return reason, why
}

// noNode: the scheduler's words.
func noNode(pod *corev1.Pod, _ inplace.Progress) (reason, why string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "" {
			return c.Reason, "its pod has no node: " + message.Quote(c.Message)
		}
	}
	return "", ""
}

// notObserved: what the status says is about the pod as it was, or the update itself has
// come to a wrong end.
func notObserved(_ *corev1.Pod, update inplace.Progress) (reason, why string) {
	if update.Reason == inplace.ReasonNotObserved || update.Reason == inplace.ReasonStopped {
		return update.Reason, update.Why
	}
	return "", ""
}

// failingUpdate: a container that the update restarts cannot be started, in the kubelet's words.
func failingUpdate(_ *corev1.Pod, update inplace.Progress) (reason, why string) {
	if update.Waiting && ending.IsFailure(update.Reason) {
		return update.Reason, update.Why
	}
	return "", ""
}

// failingContainer: one that cannot be started, in the kubelet's words.
func failingContainer(pod *corev1.Pod, _ inplace.Progress) (reason, why string) {
	return inplace.WaitingContainer(pod, ending.IsFailure)
}

// unfinishedUpdate: what the update waits for.
func unfinishedUpdate(_ *corev1.Pod, update inplace.Progress) (reason, why string) {
	return update.Reason, update.Why
}

// waitingContainer: one that is about to start.
func waitingContainer(pod *corev1.Pod, _ inplace.Progress) (reason, why string) {
	return inplace.WaitingContainer(pod, func(reason string) bool { return reason != "PodInitializing" })
}

// closedGate: one of other programs, such as one for load balancers.
func closedGate(pod *corev1.Pod, _ inplace.Progress) (reason, why string) {
	if c := Ready(pod); c != nil && c.Status != corev1.ConditionTrue && c.Reason == "ReadinessGatesNotReady" {
		return c.Reason, "its pod is not ready: " + message.Quote(c.Message)
	}
	return "", ""
}

func notReadyForLong(pod *corev1.Pod, _ inplace.Progress) (reason, why string) {
	if c := Ready(pod); c != nil && c.Status == corev1.ConditionTrue {
		return "NotReadyForLong", "its pod has not been ready for minReadySeconds yet"
	}
	return "", ""
}

func notReady(*corev1.Pod, inplace.Progress) (reason, why string) {
	return "NotReady", "its pod is not ready"
}
