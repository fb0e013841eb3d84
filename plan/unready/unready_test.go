package unready

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/inplace"
)

// state is what is known of a pod.
type state struct {
	pod    *corev1.Pod
	update inplace.Progress
}

func (s *state) condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	for i := range s.pod.Status.Conditions {
		if s.pod.Status.Conditions[i].Type == kind {
			return // the first one that is set stays
		}
	}
	s.pod.Status.Conditions = append(s.pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
}

// waits: a container of the pod does.
func (s *state) waits(container, reason, message string) {
	s.pod.Spec.Containers = append(s.pod.Spec.Containers, corev1.Container{Name: container})
	s.pod.Status.ContainerStatuses = append(s.pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
}

func (s *state) updates(p inplace.Progress) {
	if s.update.Reason == "" { // an update waits for one thing
		s.update = p
	}
}

// facts are the rows of the table, the best first, each with what makes it hold.
func facts() []struct {
	name string
	set  func(*state)
	want string
} {
	type fact = struct {
		name string
		set  func(*state)
		want string
	}
	gates := `the status of pod readiness gate "example.com/lb" is not "True", but False`
	return []fact{
		{"no node", func(s *state) {
			s.condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 node(s) didn't have free ports")
		}, "Unschedulable: its pod has no node: 0/2 nodes are available: 2 node(s) didn't have free ports"},
		{"the update is not observed", func(s *state) {
			s.updates(inplace.Progress{Reason: "NotObserved", Why: "the kubelet has not seen generation 2 of the pod yet, but 1"})
		}, "NotObserved: the kubelet has not seen generation 2 of the pod yet, but 1"},
		{"the update stopped it", func(s *state) {
			s.updates(inplace.Progress{Reason: "StoppedByUpdate", Why: "container web ended before it ran image web:2"})
		}, "StoppedByUpdate: container web ended before it ran image web:2"},
		{"the update cannot pull its image", func(s *state) {
			s.updates(inplace.Progress{Reason: "ImagePullBackOff", Waiting: true, Why: "container web has not started with image web:2: ImagePullBackOff"})
		}, "ImagePullBackOff: container web has not started with image web:2: ImagePullBackOff"},
		{"a container crashes", func(s *state) { s.waits("log", "CrashLoopBackOff", "back-off 10s") },
			"CrashLoopBackOff: container log is not ready: CrashLoopBackOff, back-off 10s"},
		{"the update has not restarted a container", func(s *state) {
			s.updates(inplace.Progress{Reason: "ContainerNotStarted", Why: "container web has not started with image web:2"})
		}, "ContainerNotStarted: container web has not started with image web:2"},
		{"the update creates a container", func(s *state) {
			s.updates(inplace.Progress{Reason: "ContainerCreating", Waiting: true, Why: "container web has not started with image web:2: ContainerCreating"})
		}, "ContainerCreating: container web has not started with image web:2: ContainerCreating"},
		{"a container is being created", func(s *state) { s.waits("proxy", "ContainerCreating", "") },
			"ContainerCreating: container proxy is not ready: ContainerCreating"},
		{"the gate of another program", func(s *state) {
			s.condition(corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady", gates)
		}, "ReadinessGatesNotReady: its pod is not ready: " + gates},
		{"not ready for long", func(s *state) { s.condition(corev1.PodReady, corev1.ConditionTrue, "", "") },
			"NotReadyForLong: its pod has not been ready for minReadySeconds yet"},
		{"not ready", func(s *state) { s.waits("web", "PodInitializing", "") }, "NotReady: its pod is not ready"},
	}
}

// TestWhy: each row holds alone, and of each pair that holds the higher wins, in whichever
// order the two came about.
func TestWhy(t *testing.T) {
	all := facts()
	for high := range all {
		for low := high; low < len(all); low++ {
			for _, order := range [][2]int{{high, low}, {low, high}} {
				s := state{pod: &corev1.Pod{}}
				for _, n := range order {
					all[n].set(&s)
				}
				if order[0] != order[1] && exclude(all[high].name, all[low].name) {
					continue
				}
				if reason, why := Why(s.pod, s.update); fmt.Sprintf("%s: %s", reason, why) != all[high].want {
					t.Errorf("%s, and %s: %s: %s\nwant %s", all[order[0]].name, all[order[1]].name, reason, why, all[high].want)
				}
			}
		}
	}
	if reason, why := Why(&corev1.Pod{}, inplace.Progress{}); reason+why != "NotReadyits pod is not ready" {
		t.Errorf("nothing is known: %s: %s", reason, why)
	}
}

// exclude: an update waits for one thing at a time, and a pod is Ready or not.
func exclude(high, low string) bool {
	update := func(name string) bool { return len(name) > 10 && name[:10] == "the update" }
	ready := func(name string) bool { return name == "the gate of another program" || name == "not ready for long" }
	return update(high) && update(low) || ready(high) && ready(low)
}
