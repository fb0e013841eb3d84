package inplace

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// HasGate is true when the pod cannot become Ready unless our gate is open.
func HasGate(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == tappv1.GateInPlaceUpdate
	})
}

// GateOpen is true when our condition is True. Absent counts as closed: that is
// how the kubelet sees it.
func GateOpen(pod *corev1.Pod) bool {
	c := gateCondition(pod)
	return c != nil && c.Status == corev1.ConditionTrue
}

// GateClosed says whether the gate's condition is there and not True. A pod that
// has just been created has none yet.
func GateClosed(pod *corev1.Pod) bool {
	_, closed := GateClosedSince(pod)
	return closed
}

// GateClosedSince says since when our condition is not True, by the clock of the
// controller that closed it. It is false for a gate that is open or has no
// condition yet.
func GateClosedSince(pod *corev1.Pod) (time.Time, bool) {
	c := gateCondition(pod)
	if c == nil || c.Status == corev1.ConditionTrue {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// GateOpenSince says since when our condition is True, by the clock of the controller that
// opened it. It is false for a gate that is closed or has no condition yet.
func GateOpenSince(pod *corev1.Pod) (time.Time, bool) {
	c := gateCondition(pod)
	if c == nil || c.Status != corev1.ConditionTrue {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

func gateCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == tappv1.GateInPlaceUpdate {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// Target is the pod that a patch holds for.
type Target struct {
	// UID of the pod: the patch fails on another pod of the same name. Empty for the
	// second half of a create.
	UID types.UID `json:"uid,omitempty"`
	// ResourceVersion: the patch fails on any other version of the pod. Empty: it holds
	// for all.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// GatePatch is a strategic merge patch of a pod's status that opens or closes the
// gate. Conditions merge by type, so that Ready, which is the kubelet's, stays as it
// is. The condition carries no observedGeneration: it speaks of our doing, not of any
// generation of the pod.
func GatePatch(target Target, open bool, reason, message string, now time.Time) []byte {
	status := corev1.ConditionFalse
	if open {
		status = corev1.ConditionTrue
	}
	type condition struct {
		Type               corev1.PodConditionType `json:"type"`
		Status             corev1.ConditionStatus  `json:"status"`
		LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
		Reason             string                  `json:"reason,omitempty"`
		Message            string                  `json:"message,omitempty"`
	}
	var patch struct {
		Metadata Target `json:"metadata,omitzero"`
		Status   struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	patch.Metadata = target
	patch.Status.Conditions = []condition{{tappv1.GateInPlaceUpdate, status, metav1.NewTime(now), reason, message}}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil // text, times and booleans always marshal
	}
	return text
}
