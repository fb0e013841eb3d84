package inplace

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestStoppedByAnUpdateThatIsTakenBack: a tag that does not exist is put right by the tag
// that was there before, when the kubelet has killed the container already. Once that was
// taken for the end of the instance, which stayed down for good.
func TestStoppedByAnUpdateThatIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		to      string // the last image
		after   time.Duration
		open    bool // the gate
		stopped bool
	}{
		"while it is out of service":            {to: "a:1", after: time.Hour, stopped: true},
		"the kubelet acts late":                 {to: "a:1", after: time.Minute, open: true, stopped: true},
		"it ended by itself, long after":        {to: "a:1", after: time.Hour, open: true},
		"another tag follows, which is not run": {to: "a:3", after: time.Hour, open: true, stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podWith("a:1")
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			pod, _ = upgraded(t, pod, "a:none")
			pod, _ = upgraded(t, pod, c.to)
			ended := pod.Status.ContainerStatuses[0]
			ended.Ready = false
			ended.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(patchTime.Add(c.after))}}
			pod = with(seen(pod), ended)
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
			if c.open {
				pod.Status.Conditions = []corev1.PodCondition{{Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionTrue}}
			} else {
				pod.Status.Conditions = []corev1.PodCondition{{Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionFalse}}
			}
			if got := StoppedByUpdate(pod); (got != "") != c.stopped {
				t.Errorf("stopped by the update: %q", got)
			}
		})
	}
}

// TestStoppedBeforeItWasSeen: a kubelet started the container of a pod that was pending,
// and killed it for an update that was written before its status told of the container.
// Without a gate, the pod was taken for one that came to its end.
func TestStoppedBeforeItWasSeen(t *testing.T) {
	for name, c := range map[string]struct {
		via     []string // the tags that follow the first one
		runs    string   // the tag that the kubelet ran
		gate    corev1.ConditionStatus
		after   time.Duration
		stopped bool
	}{
		"one update":                        {via: []string{"a:none"}, runs: "a:1", stopped: true},
		"two updates":                       {via: []string{"a:none", "a:3"}, runs: "a:1", stopped: true},
		"the kubelet acts late":             {via: []string{"a:none"}, runs: "a:1", after: time.Minute, stopped: true},
		"it ended by itself, long after":    {via: []string{"a:none"}, runs: "a:1", after: time.Hour},
		"the gate is closed for long":       {via: []string{"a:none"}, runs: "a:1", gate: corev1.ConditionFalse, after: time.Hour, stopped: true},
		"the gate is open":                  {via: []string{"a:none"}, runs: "a:1", gate: corev1.ConditionTrue, stopped: true},
		"what the update brought has ended": {via: []string{"a:none", "a:3"}, runs: "a:3"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podWith("a:1")
			pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", Image: "a:1"}
			for _, image := range c.via {
				pod, _ = upgraded(t, pod, image)
			}
			ended := running("app", c.runs, "1")
			ended.Ready = false
			ended.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(patchTime.Add(c.after))}}
			pod = with(seen(pod), ended)
			if c.gate != "" {
				pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
				pod.Status.Conditions = []corev1.PodCondition{{Type: tappv1.GateInPlaceUpdate, Status: c.gate}}
			}
			if got := StoppedByUpdate(pod); (got != "") != c.stopped {
				t.Errorf("stopped by the update: %q", got)
			}
		})
	}
}
