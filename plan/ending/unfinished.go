package ending

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// CollectorTimeout is how long Kubernetes may take to remove a pod that it called
	// failed because its node is gone: it does both at once.
	CollectorTimeout = time.Minute
	// RemovalTimeout is how long the API server may take to remove a pod that has no
	// grace period left: it does so with the request that said so.
	RemovalTimeout = 15 * time.Second
)

// Unfinished says from when on the deletion of a pod counts as broken off, and of what kind it
// was; no reason: it does not. Nobody else would finish it where the node of the pod does not
// work, or one of the same name is back.
func Unfinished(pod *corev1.Pod) (due time.Time, reason, why string) {
	if pod.DeletionTimestamp == nil {
		since, _ := CollectedSince(pod)
		return since.Add(CollectorTimeout), "NodeGone", "its node was gone, and Kubernetes did not remove the pod"
	}
	// The API server stamps a pod, and then removes it: two writes. What the first one left
	// behind goes with the next DELETE, without regard to the grace period of that.
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 && len(pod.Finalizers) == 0 {
		return pod.DeletionTimestamp.Add(RemovalTimeout), "RemovalUnfinished", "it has no grace period left, and the API server did not remove the pod"
	}
	return time.Time{}, "", ""
}
