package unready

import corev1 "k8s.io/api/core/v1"

// ByOthers says whether somebody else than its kubelet called the pod not Ready: its
// containers are ready, and so are its gates. The node controller does so when a node is
// silent.
func ByOthers(pod *corev1.Pod) bool {
	is := func(kind corev1.PodConditionType) bool {
		for i := range pod.Status.Conditions {
			if pod.Status.Conditions[i].Type == kind {
				return pod.Status.Conditions[i].Status == corev1.ConditionTrue
			}
		}
		return false
	}
	if is(corev1.PodReady) || !is(corev1.ContainersReady) {
		return false
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if !is(gate.ConditionType) {
			return false
		}
	}
	return true
}

// Ready returns the pod's Ready condition, or nil.
func Ready(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// IsReady says whether the pod is Ready.
func IsReady(pod *corev1.Pod) bool {
	c := Ready(pod)
	return c != nil && c.Status == corev1.ConditionTrue
}
