package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func setReady(pod *corev1.Pod, is bool, at metav1.Time) { setCondition(pod, corev1.PodReady, is, at) }

func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, is bool, at metav1.Time) {
	want := corev1.ConditionFalse
	if is {
		want = corev1.ConditionTrue
	}
	switch has := conditionOf(pod, kind); {
	case has == nil:
		if start := pod.Status.StartTime; start != nil && !is { // a kubelet says so before it starts a container
			at = *start
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: want, LastTransitionTime: at})
	case has.Status != want:
		has.Status, has.LastTransitionTime = want, at
	}
}

func gatesOpen(pod *corev1.Pod) bool {
	for _, g := range pod.Spec.ReadinessGates {
		if c := conditionOf(pod, g.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			return false
		}
	}
	return true
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func isReady(pod *corev1.Pod) bool {
	c := conditionOf(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func hasGate(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == tappv1.GateInPlaceUpdate })
}

func gateOpen(pod *corev1.Pod) bool {
	c := conditionOf(pod, tappv1.GateInPlaceUpdate)
	return c != nil && c.Status == corev1.ConditionTrue
}
