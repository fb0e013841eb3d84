package describe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api/answer"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/plan/unready"
)

// Pod describes a pod, without its environment variables, which may be secret.
func Pod(pod *corev1.Pod, owner string) apiv1.Pod {
	out := apiv1.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Created: pod.CreationTimestamp, Deleting: pod.DeletionTimestamp != nil,
		Phase: string(pod.Status.Phase), Node: pod.Spec.NodeName, IP: pod.Status.PodIP, Owner: owner, Labels: pod.Labels, Ready: unready.IsReady(pod), Containers: []apiv1.Container{}}
	for _, c := range pod.Status.Conditions {
		out.Conditions = append(out.Conditions, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime})
	}
	add := func(init bool, specs []corev1.Container, statuses []corev1.ContainerStatus) {
		for _, spec := range specs {
			one := apiv1.Container{Name: spec.Name, Image: spec.Image, Init: init, State: "unknown"}
			for _, s := range statuses {
				if s.Name == spec.Name {
					one.Ready, one.Restarts, one.State = s.Ready, s.RestartCount, stateOf(&s)
				}
			}
			out.Containers = append(out.Containers, one)
		}
	}
	add(false, pod.Spec.Containers, pod.Status.ContainerStatuses)
	add(true, pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	return out
}

func stateOf(c *corev1.ContainerStatus) string {
	because := func(text, reason, message string) string {
		for _, part := range []string{reason, message} {
			if part != "" {
				text += ", " + answer.Shorten(part)
			}
		}
		return text
	}
	switch s := c.State; {
	case s.Waiting != nil:
		return because("waiting", s.Waiting.Reason, s.Waiting.Message)
	case s.Terminated != nil:
		return because(fmt.Sprintf("ended with exit code %d", s.Terminated.ExitCode), s.Terminated.Reason, s.Terminated.Message)
	case s.Running != nil:
		return "running"
	}
	return "unknown"
}
