package sim

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// What kubelets do in runs of some class.

// clockOf a node says its time, as the API writes it.
func (k *kubelets) clockOf(node string) metav1.Time {
	if !k.has(classClocks) {
		return k.Second()
	}
	return metav1.NewTime(k.Second().Add(time.Duration(skews()[node]) * time.Second))
}

// late is how long a kubelet takes to report what it saw, in runs where it is late.
const late = 5 * time.Second

// reportsLate says whether the kubelet has yet to report what it saw of the pod.
func (k *kubelets) reportsLate(s *sandbox, pod *corev1.Pod) bool {
	return k.has(classLate) && s.seen != nil && s.unreported && pod.DeletionTimestamp == nil
}

// foundAt is when a kubelet found what it reports, by its clock.
func (k *kubelets) foundAt(s *sandbox) metav1.Time {
	now := k.clockOf(s.node)
	if k.has(classLate) {
		now.Time = now.Add(s.seenAt.Truncate(time.Second).Sub(k.Second().Time))
	}
	return now
}

// answersClosing says whether a pod's kubelet has seen its gate closed, and has yet to report
// that. It does so within twice its sync period.
func (k *kubelets) answersClosing(pod *corev1.Pod, at time.Time) bool {
	if pod == nil || !k.has(classLate) {
		return false
	}
	s, gate := k.sandboxes[pod.UID], conditionOf(pod, tappv1.GateInPlaceUpdate)
	return s != nil && s.seen != nil && s.unreported && !gatesOpen(s.seen) && gate != nil && at.Sub(gate.LastTransitionTime.Time) < 20*time.Second
}

// words of a runtime about what does not work.
func (k *kubelets) words() string {
	switch {
	case k.has(classMessages):
		return strings.Repeat("é failed; ", 4000)
	case k.has(classSizes):
		return strings.Repeat("é failed; ", 600)
	}
	return ""
}

// stay leaves dead the container that an update killed: it ended gracefully, and the image
// of the next one could not be pulled, so that it counts as one that came to its end.
func (k *kubelets) stay(s *sandbox, old *corev1.ContainerStatus, now metav1.Time) {
	left := *old.DeepCopy()
	left.Ready, left.Started = false, ptr.To(false)
	left.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: old.ContainerID, FinishedAt: now, Reason: "Completed"}}
	s.runs[old.Name], s.byUpdate, s.unreported = &left, true, true
	for _, c := range s.seen.Spec.Containers {
		if has := s.runs[c.Name]; has == nil || has.State.Terminated == nil {
			return
		}
	}
	k.end(s, corev1.PodSucceeded, "")
}

// holdsOut says whether a pod is left on the node that is lost for good. For as long, pods
// that hang do: so that nobody finds that node by the way.
func (k *kubelets) holdsOut() bool {
	return k.lost != "" && slices.ContainsFunc(apiserver.All[*corev1.Pod](k.Store, pods), func(pod *corev1.Pod) bool { return pod.Spec.NodeName == k.lost })
}

// resize tells of a resize that the node does not carry out.
func (k *kubelets) resize(s *sandbox, pod *corev1.Pod) {
	if !k.has(classResizes) {
		return
	}
	if s.cpu == nil {
		s.cpu = map[string]resource.Quantity{}
	}
	refused := false
	for _, c := range s.seen.Spec.Containers {
		if _, known := s.cpu[c.Name]; !known {
			s.cpu[c.Name] = c.Resources.Requests.Cpu().DeepCopy()
		}
		given := s.cpu[c.Name]
		refused = refused || given.Cmp(*c.Resources.Requests.Cpu()) != 0
	}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	if refused {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonInfeasible, Message: "node did not have enough capacity"})
	}
}

// isHeld says whether only finalizers keep a pod that has stopped.
func (s *sandbox) isHeld(pod *corev1.Pod) bool {
	return s.stopped && len(pod.Finalizers) > 0 && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0
}

// restartKubelet of a node. What it runs goes on, and conditions that were True get the time
// of the restart. Where probes begin anew, the containers are not ready until they succeed.
func (k *kubelets) restartKubelet(node string, probed bool) {
	for _, pod := range apiserver.All[*corev1.Pod](k.Store, pods) {
		s := k.sandboxes[pod.UID]
		if s == nil || s.node != node || s.ended != "" || s.stopped || k.down[node] {
			continue
		}
		if probed {
			for _, c := range s.runs {
				c.Ready = c.Ready && c.State.Running == nil
			}
			s.settling = true
			k.report(s, pod)
			continue
		}
		k.write(keyOf(pod), pod.UID, "kubelet", func(p *corev1.Pod) {
			for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
				if c := conditionOf(p, kind); c != nil && c.Status == corev1.ConditionTrue {
					c.LastTransitionTime = k.clockOf(node)
				}
			}
		})
	}
}
