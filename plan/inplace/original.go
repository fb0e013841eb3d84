package inplace

import (
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// tkestack/tapp closes the gate, patches the pod, and opens the gate when each container
// runs the image that the spec names. It records nothing of that: to version 1.1.1 the
// pod has no annotation, and in 1.2.1 the annotation AnnotationInPlaceState says "true".
//
// | pod with a hash of the original's | the update |
// |---|---|
// | the gate is open, and no annotation | none is under way |
// | all containers run what the spec names, by name or digest, or started after the gate was closed | is done |
// | a container does not | is under way |
//
// It gets no hash of ours before it is done: nothing else would tell of it any more.

// IsOriginals is true for a pod whose hash tkestack/tapp wrote.
func IsOriginals(pod *corev1.Pod) bool {
	hash, ok := pod.Labels[tappv1.LabelTemplateHash]
	return ok && !template.IsOurs(hash)
}

// IsMarkedByOriginal is true for a pod of tkestack/tapp with the mark of an update.
func IsMarkedByOriginal(pod *corev1.Pod) bool {
	return pod.Annotations[tappv1.AnnotationInPlaceState] == "true" && IsOriginals(pod)
}

// mayBeUpdating says whether an update of tkestack/tapp may be under way, as far as that
// can be told without a look at containers.
func mayBeUpdating(pod *corev1.Pod) bool {
	return IsMarkedByOriginal(pod) || !GateOpen(pod) && IsOriginals(pod)
}

// originalState is what an update of tkestack/tapp waits for; false: none is under way.
func originalState(pod *corev1.Pod) (*State, bool) {
	if !mayBeUpdating(pod) {
		return nil, false
	}
	var waits map[string]LastContainerStatus
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		status := statusOf(pod.Status.ContainerStatuses, c.Name)
		if status == nil || status.ImageID != "" && (status.Image == c.Image || template.RunsImage(status, c.Image)) {
			continue
		}
		if waits == nil {
			waits = map[string]LastContainerStatus{}
		}
		waits[c.Name] = LastContainerStatus{}
	}
	if waits == nil {
		return nil, false
	}
	state := &State{LastContainerStatuses: waits}
	if c := gateCondition(pod); c != nil {
		state.UpdateTimestamp = c.LastTransitionTime
	}
	return state, true
}
