package inplace

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// StoppedByUpdate says, in a sentence, which container an update in place stopped for
// good; empty: none.
//
// A kubelet kills a container whose image changes before it pulls the new image, and
// starts another one whatever the restartPolicy. When the pull fails it looks at the
// restartPolicy again: under Never, and under OnFailure after an exit with 0, it takes
// the container for one that ran to its end. The pod may then be Succeeded or Failed.
// That is no end that the instance came to.
//
// | container in the status | known of the update | stopped by it |
// |---|---|---|
// | runs, waits, or is started again by the restartPolicy | | no |
// | ended | it is not in the record, or it was started for the update | no |
// | | it is the recorded one, or none has been seen since | yes |
// | | it is the recorded one, and the update was taken back to its image | while the gate is closed, and when it ended within the time that a kubelet takes to act: it may have acted on the image in between |
// | | it may be either (see restart) | the same: a pod without a gate has only the time |
//
// A container that came to its end in the moment of the update cannot be told from one
// that was killed, and counts as stopped: it runs again.
func StoppedByUpdate(pod *corev1.Pod) string {
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever && pod.Spec.RestartPolicy != corev1.RestartPolicyOnFailure && !hasOwnPolicy(pod) {
		return "" // without a look at the record, which costs most
	}
	state, ok := ReadState(pod)
	if !ok {
		return ""
	}
	for _, c := range containersOf(pod) {
		if last, ok := state.LastContainerStatuses[c.Name]; ok && c.stoppedBy(last, state, pod) {
			return fmt.Sprintf("the update stopped container %s, and its restartPolicy keeps the kubelet from starting it with image %s", c.Name, c.Image)
		}
	}
	return ""
}

func (c container) stoppedBy(last LastContainerStatus, state *State, pod *corev1.Pod) bool {
	if !c.restarts() || !c.ended(pod.Spec.RestartPolicy) {
		return false
	}
	switch c.restart(last, state) {
	case notStarted, notRestarted:
		return true
	case restarted:
		if !c.isTakenBack(last) {
			return false
		}
	}
	return GateClosed(pod) || c.timeToAct(pod, state, c.status.State.Terminated.FinishedAt.Time) > 0
}

// isTakenBack says whether the container is the recorded one, and the spec, which names
// its image again, named another one in between.
func (c container) isTakenBack(last LastContainerStatus) bool {
	return c.status.ContainerID == last.ContainerID && last.Image == c.Image && len(last.Via) > 0
}

// hasOwnPolicy says whether a container has a restartPolicy of its own.
func hasOwnPolicy(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].RestartPolicy != nil {
			return true
		}
	}
	return false
}
