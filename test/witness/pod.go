package witness

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// InService says whether a pod is ready and stays so.
func InService(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// isNodeSilent says whether a pod is not ready although its containers are, and its gates
// are open. A kubelet leaves a pod so for a moment when it becomes ready; one that was
// ready only the node controller makes so.
func isNodeSilent(p *corev1.Pod) bool {
	is := map[corev1.PodConditionType]corev1.ConditionStatus{}
	for _, c := range p.Status.Conditions {
		is[c.Type] = c.Status
	}
	for _, g := range p.Spec.ReadinessGates {
		if is[g.ConditionType] != corev1.ConditionTrue {
			return false
		}
	}
	return p.DeletionTimestamp == nil && is[corev1.ContainersReady] == corev1.ConditionTrue && is[corev1.PodReady] == corev1.ConditionFalse
}

func ours(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == tappv1.Kind
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// drained says whether the pod is one that is taken out of service first.
func drained(p *corev1.Pod) bool {
	for _, g := range p.Spec.ReadinessGates {
		if g.ConditionType == tappv1.GateInPlaceUpdate {
			return true
		}
	}
	return false
}

// how a pod is that is not in service: when it was written last, whether it is being
// deleted, its image, and each condition that is not true.
func how(p *corev1.Pod) string {
	if p == nil {
		return "has no pod"
	}
	out := "at " + p.ResourceVersion + " with " + p.Spec.Containers[0].Image
	if p.DeletionTimestamp != nil {
		out += ", being deleted"
	}
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			out += fmt.Sprintf(", %s=%s", c.Type, c.Status)
		}
	}
	return out
}
