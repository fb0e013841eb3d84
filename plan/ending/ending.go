// Package ending judges how a pod came to its end: what it did by itself is told apart
// from what was done to it. A disruption, a node that went and a kubelet that refused the
// pod are losses, after which the instance goes on.
package ending

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/message"
)

// lateReport is how long after its containers ended a kubelet may report the pod. A
// kubelet that stopped a pod writes DisruptionTarget then, and not when it began.
const lateReport = time.Minute

// mostSkew is how far the clock of a node may be behind the API server's.
const mostSkew = 30 * time.Second

// IsFinal says whether the end of a pod is that of its instance. The pod is Failed or
// Succeeded. First match decides:
//
//	its restartPolicy is Always   no
//	it was lost                   no
//	OnFailure                     if it succeeded, or failures are final
//	Never                         yes
//
// A loss may cost work that was done: Never is no promise of at most once.
func IsFinal(pod *corev1.Pod, failures bool) bool {
	switch {
	case !MayComplete(&pod.Spec) || Loss(pod) != "":
		return false
	case pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return failures || pod.Status.Phase == corev1.PodSucceeded
	}
	return true
}

// MayComplete says whether instances with such pods come to an end at all.
func MayComplete(spec *corev1.PodSpec) bool {
	return spec.RestartPolicy == corev1.RestartPolicyNever || spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

// Loss says in a few words what took away a pod that is Failed or Succeeded; empty: nothing
// did, it ended by itself.
func Loss(pod *corev1.Pod) string {
	switch c := disruption(pod); {
	case isRefused(pod):
		return "its kubelet refused the pod: " + message.Quote(cmp.Or(pod.Status.Reason, "no reason given"))
	case c != nil && isDisrupted(pod, c):
		return "the pod was disrupted: " + message.Quote(cmp.Or(pod.Status.Reason, c.Reason))
	}
	return ""
}

// FailedByItself says whether a pod failed by itself, so that its template is to blame; it
// may run, terminate or have ended. Otherwise a pod that has to be followed was lost: it
// was evicted or deleted, its node is gone, its kubelet refused it, or it was never seen
// (nil).
//
//	the pod                                       it failed by itself
//	nil, refused by its kubelet, or disrupted     no
//	Evicted, without DisruptionTarget             no: by older kubelets, and over its own limits
//	Failed or Succeeded                           if it is Failed
//	terminating                                   if a container had failed before that was asked for
//	none of these                                 if a container ended with an error, or waits for more than its turn
func FailedByItself(pod *corev1.Pod) bool {
	switch {
	case pod == nil || isRefused(pod) || disruption(pod) != nil || pod.Status.Reason == reasonEvicted:
		return false
	case pod.DeletionTimestamp != nil:
		grace := time.Duration(0)
		if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
			grace = time.Duration(*seconds) * time.Second
		}
		return hasFailed(pod, pod.DeletionTimestamp.Add(-grace))
	case isOver(pod):
		return pod.Status.Phase == corev1.PodFailed
	}
	return hasFailed(pod, time.Time{})
}

// isRefused says whether the pod's kubelet did not admit it. It reports no container then.
func isRefused(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && len(pod.Status.ContainerStatuses) == 0
}

const reasonEvicted = "Evicted" // by the kubelet

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// disruption is the pod's condition DisruptionTarget where that is True, or nil.
func disruption(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// isDisrupted says whether a disruption ended the pod: a container had not ended before. A
// pod that came to its end first may be disrupted as well, by a drain of its node.
// Sidecars do not count: they end after the others in any case.
func isDisrupted(pod *corev1.Pod, c *corev1.PodCondition) bool {
	began := c.LastTransitionTime.Time
	if c.Reason == corev1.PodReasonTerminationByKubelet {
		grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
		if pod.Spec.TerminationGracePeriodSeconds != nil {
			grace = *pod.Spec.TerminationGracePeriodSeconds
		}
		began = began.Add(-lateReport - time.Duration(grace)*time.Second)
	}
	for i := range pod.Status.ContainerStatuses {
		end := pod.Status.ContainerStatuses[i].State.Terminated
		if end == nil || end.FinishedAt.IsZero() || !end.FinishedAt.Time.Before(began) {
			return true
		}
	}
	return false
}

// hasFailed says whether a container of the pod ended with an error, or cannot be started.
// What ended after the time, unless that is zero, does not count: it was stopped. Nor does
// what ended shortly before: the clock of its node may be slow.
func hasFailed(pod *corev1.Pod, stopped time.Time) bool {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			switch s := &list[i].State; {
			case s.Waiting != nil:
				if IsFailure(s.Waiting.Reason) {
					return true
				}
			case s.Terminated != nil && s.Terminated.ExitCode != 0:
				end := s.Terminated.FinishedAt
				if stopped.IsZero() || !end.IsZero() && end.Time.Before(stopped.Add(-mostSkew)) {
					return true
				}
			}
		}
	}
	return false
}

// IsFailure says whether a container that waits for this reason cannot be started: its image
// or configuration cannot be had, or it crashes. The others wait for their turn.
func IsFailure(reason string) bool {
	return reason != "" && reason != "ContainerCreating" && reason != "PodInitializing"
}

// TimeOf the end of a pod that ended. A rejected one has no container that tells.
func TimeOf(pod *corev1.Pod) time.Time {
	var end time.Time
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	if end.IsZero() {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.DisruptionTarget || c.Type == corev1.PodReady {
				if c.LastTransitionTime.After(end) {
					end = c.LastTransitionTime.Time
				}
			}
		}
	}
	if end.IsZero() && pod.Status.StartTime != nil {
		end = pod.Status.StartTime.Time
	}
	if end.IsZero() {
		end = pod.CreationTimestamp.Time
	}
	return end
}

// IsCollected says whether Kubernetes is about to remove the pod because its node
// is gone. It calls such a pod failed a moment before, which is no end that the
// instance came to: seen or missed, the instance goes on the same.
func IsCollected(pod *corev1.Pod) bool {
	_, is := CollectedSince(pod)
	return is
}

// CollectedSince is when Kubernetes was about to remove the pod.
func CollectedSince(pod *corev1.Pod) (time.Time, bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC" {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}
