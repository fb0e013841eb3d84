package kept

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ending"
	"tkestack.io/tapp/plan/template"
)

// IsKept says whether the pod still has the content that it was made with, as its instance
// was or as usual. Where somebody took or overwrote its hash, nothing tells that it has not.
func IsKept(pod *corev1.Pod) bool {
	made, has := pod.Annotations[tappv1.AnnotationKept], pod.Labels[tappv1.LabelTemplateHash]
	return made != "" && (made == has || !template.IsOurs(has))
}

// StillStarts says whether a kept pod counts as serving for its own turn, and how long time
// alone lets it. First match decides:
//
//	it was Ready once                   no
//	it failed, or a container restarted no
//	it is as old as the deadline        no
//	none of these                       yes
func StillStarts(pod *corev1.Pod, now time.Time, deadline time.Duration) (left time.Duration, is bool) {
	left = deadline - now.Sub(pod.CreationTimestamp.Time)
	if left <= 0 || wasReady(pod) || ending.FailedByItself(pod) {
		return 0, false
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].RestartCount > 0 {
			return 0, false
		}
	}
	return left, true
}

// wasReady says whether the pod is or was Ready: a kubelet reports Ready=False before it
// starts the first container, so that a later time is that of a change.
func wasReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != corev1.PodReady {
			continue
		}
		return c.Status == corev1.ConditionTrue || isAfterStart(pod, c.LastTransitionTime.Time)
	}
	return false
}

// isAfterStart says whether all containers ran before the time.
func isAfterStart(pod *corev1.Pod, at time.Time) bool {
	for i := range pod.Status.ContainerStatuses {
		if r := pod.Status.ContainerStatuses[i].State.Running; r == nil || !r.StartedAt.Time.Before(at) {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}
