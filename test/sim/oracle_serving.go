package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// isServing says whether a pod serves: Ready, not ending, and nothing that interrupts it is
// under way.
func isServing(t *tappv1.TApp, pod *corev1.Pod) bool {
	if pod == nil || controllerOf(pod) != t.UID || pod.DeletionTimestamp != nil || isFinished(pod) || !isReady(pod) {
		return false
	}
	if hasGate(pod) {
		return gateOpen(pod)
	}
	return !isChanging(pod)
}

// isAvailable says whether a pod has served for minReadySeconds.
func isAvailable(t *tappv1.TApp, pod *corev1.Pod, at time.Time) bool {
	if !isServing(t, pod) {
		return false
	}
	wait := time.Duration(t.Spec.MinReadySeconds) * time.Second
	return wait == 0 || at.Sub(conditionOf(pod, corev1.PodReady).LastTransitionTime.Time) >= wait
}

// isCalledUnready says whether it was not the kubelet of a pod that called it not Ready, but
// who watches over nodes: its containers are, and its gates are open.
func isCalledUnready(t *tappv1.TApp, pod *corev1.Pod) bool {
	if pod == nil || controllerOf(pod) != t.UID || pod.DeletionTimestamp != nil || isFinished(pod) || isReady(pod) {
		return false
	}
	containers := conditionOf(pod, corev1.ContainersReady)
	return containers != nil && containers.Status == corev1.ConditionTrue && gatesOpen(pod) && !isChanging(pod)
}

// isHeldUp says whether a pod was made as it was or as usual, and is still on its way: for its
// own turn it serves until it was Ready once, failed, or is progressDeadlineSeconds old.
func (o *oracle) isHeldUp(t *tappv1.TApp, pod *corev1.Pod, at time.Time) bool {
	if pod == nil || controllerOf(pod) != t.UID || pod.DeletionTimestamp != nil || isFinished(pod) || pod.Annotations[tappv1.AnnotationKept] == "" || o.wasReady[pod.UID] {
		return false
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.State.Waiting != nil || c.RestartCount > 0 {
			return false
		}
	}
	return at.Sub(pod.CreationTimestamp.Time) < time.Duration(*t.Spec.ProgressDeadlineSeconds)*time.Second
}

// isChanging says whether the kubelet has not followed the spec yet.
func isChanging(pod *corev1.Pod) bool {
	if _, updated := pod.Annotations[tappv1.AnnotationInPlaceState]; !updated {
		return false
	}
	if told := pod.Status.ObservedGeneration; told != 0 && told < pod.Generation {
		return true
	}
	for _, c := range pod.Spec.Containers {
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name == c.Name && (s.Image != c.Image || !s.Ready) {
				return true
			}
		}
	}
	return false
}
