package ending

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// seconds after at.
func seconds(n int) metav1.Time { return metav1.NewTime(at.Add(time.Duration(n) * time.Second)) }

type edit func(*corev1.Pod)

// over: the pod has this phase, with a reason of the kubelet or none.
func over(phase corev1.PodPhase, reason string) edit {
	return func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = phase, reason }
}

// exited: the next container ended with this code, some seconds after at.
func exited(code int32, after int) edit {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: seconds(after)}}})
	}
}

// state of the next container.
func state(s corev1.ContainerState) edit {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{State: s})
	}
}

func waits(reason string) edit {
	return state(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}})
}

func disrupted(reason string, after int, status corev1.ConditionStatus) edit {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: status, Reason: reason, LastTransitionTime: seconds(after)})
	}
}

// deleted: some seconds after at, with 30 seconds of grace.
func deleted(after int) edit {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(seconds(after+30)), new(int64(30))
	}
}

func podOf(policy corev1.RestartPolicy, edits []edit) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: policy}}
	for _, e := range edits {
		e(p)
	}
	return p
}

// TestIsFinal: each way to end, as kubelets and controllers of Kubernetes report it.
func TestIsFinal(t *testing.T) {
	const kubelet = corev1.PodReasonTerminationByKubelet
	failed, succeeded, yes := corev1.PodFailed, corev1.PodSucceeded, corev1.ConditionTrue
	unknown := state(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}})
	sidecar := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, FinishedAt: seconds(20)}}}}
	}
	for _, c := range []struct {
		name             string
		edits            []edit
		onFailure, never bool
	}{
		{"success", []edit{over(succeeded, ""), exited(0, 0)}, true, true},
		{"failure", []edit{over(failed, ""), exited(1, 0)}, false, true},
		{"one of two failed", []edit{over(failed, ""), exited(0, 0), exited(1, 9)}, false, true},
		{"the deadline of the pod", []edit{over(failed, "DeadlineExceeded"), waits("ImagePullBackOff")}, false, true},
		{"refused by its kubelet", []edit{over(failed, "OutOfcpu")}, false, false},

		// A kubelet writes the condition when all containers have ended.
		{"graceful shutdown of the node", []edit{over(failed, "Terminated"), exited(143, 0), disrupted(kubelet, 1, yes)}, false, false},
		{"graceful shutdown, all exited with 0", []edit{over(succeeded, "Terminated"), exited(0, 0), disrupted(kubelet, 1, yes)}, false, false},
		{"graceful shutdown, one stopped and one at the end of its grace period", []edit{over(failed, "Terminated"), exited(0, 0), exited(137, 30), disrupted(kubelet, 31, yes)}, false, false},
		{"pressure on the node", []edit{over(failed, "Evicted"), exited(137, 0), disrupted(kubelet, 0, yes)}, false, false},
		{"pressure before a container was started", []edit{over(failed, "Evicted"), unknown, disrupted(kubelet, 0, yes)}, false, false},
		{"for a critical pod", []edit{over(failed, "Preempting"), exited(137, 0), disrupted(kubelet, 2, yes)}, false, false},
		{"succeeded, and its kubelet stopped it a while after", []edit{over(succeeded, ""), exited(0, 0), disrupted(kubelet, 91, yes)}, true, true},
		{"failed, and its kubelet stopped it a while after", []edit{over(failed, ""), exited(1, 0), disrupted(kubelet, 91, yes)}, false, true},
		{"over the limit of its own volume", []edit{over(failed, "Evicted"), exited(137, 0)}, false, true},

		// Others write it before they delete the pod.
		{"preemption", []edit{over(failed, ""), exited(143, 0), disrupted(corev1.PodReasonPreemptionByScheduler, 0, yes)}, false, false},
		{"taint", []edit{over(failed, ""), exited(143, 5), disrupted("DeletionByTaintManager", 0, yes)}, false, false},
		{"drain, all exited with 0", []edit{over(succeeded, ""), exited(0, 5), disrupted("EvictionByEvictionAPI", 0, yes)}, false, false},
		{"drain, one had ended", []edit{over(succeeded, ""), exited(0, -60), exited(0, 5), disrupted("EvictionByEvictionAPI", 0, yes)}, false, false},
		{"drain, a container never ran", []edit{over(failed, ""), exited(0, -60), unknown, disrupted("EvictionByEvictionAPI", 0, yes)}, false, false},
		{"drain of what had succeeded", []edit{over(succeeded, ""), exited(0, -1), disrupted("EvictionByEvictionAPI", 0, yes)}, true, true},
		{"drain of what had failed", []edit{over(failed, ""), exited(1, -1), disrupted("EvictionByEvictionAPI", 0, yes)}, false, true},
		{"drain of what had succeeded but for a sidecar", []edit{over(succeeded, ""), exited(0, -1), sidecar, disrupted("EvictionByEvictionAPI", 0, yes)}, true, true},
		{"drain that did not come about", []edit{over(failed, ""), exited(1, 5), disrupted("EvictionByEvictionAPI", 0, corev1.ConditionFalse)}, false, true},
		{"pod GC", []edit{over(failed, ""), state(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}), disrupted("DeletionByPodGC", 0, yes)}, false, false},
		{"pod GC of what had succeeded", []edit{over(succeeded, ""), exited(0, -1), disrupted("DeletionByPodGC", 0, yes)}, true, true},
	} {
		for policy, want := range map[corev1.RestartPolicy]bool{"": false, corev1.RestartPolicyAlways: false, corev1.RestartPolicyOnFailure: c.onFailure, corev1.RestartPolicyNever: c.never} {
			if got := IsFinal(podOf(policy, c.edits), false); got != want {
				t.Errorf("%s, restartPolicy %q: final %t, want %t", c.name, policy, got, want)
			}
			if policy == corev1.RestartPolicyOnFailure {
				want = c.never
			}
			if got := IsFinal(podOf(policy, c.edits), true); got != want {
				t.Errorf("%s, restartPolicy %q, failures are final: %t, want %t", c.name, policy, got, want)
			}
		}
	}
}

// TestFailedByItself: what the template of a pod is to blame for.
func TestFailedByItself(t *testing.T) {
	yes, running := corev1.ConditionTrue, state(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	for _, c := range []struct {
		name  string
		edits []edit
		want  bool
	}{
		{"runs", []edit{running}, false},
		{"ran well before it was deleted", []edit{exited(137, 30), deleted(0)}, false},
		{"nothing is known of it", nil, false},
		{"waits for its containers", []edit{waits("ContainerCreating"), waits("PodInitializing"), waits("")}, false},
		{"one container did its work", []edit{running, exited(0, 0)}, false},

		{"crashes", []edit{running, waits("CrashLoopBackOff")}, true},
		{"crashed just now", []edit{running, exited(1, 0)}, true},
		{"has no image", []edit{waits("ImagePullBackOff")}, true},
		{"has no configuration", []edit{waits("CreateContainerConfigError")}, true},
		{"failed", []edit{over(corev1.PodFailed, ""), exited(1, 0)}, true},
		{"crashed before it was deleted", []edit{exited(1, -60), deleted(0)}, true},
		{"stopped when it was deleted, by the slow clock of its node", []edit{exited(143, -7), deleted(0)}, false},
		{"has no image and is deleted", []edit{waits("ErrImagePull"), deleted(0)}, true},
		{"an init container crashes", []edit{func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		}}, true},

		{"crashes, and its node is drained", []edit{waits("CrashLoopBackOff"), disrupted("EvictionByEvictionAPI", 0, yes), deleted(0)}, false},
		{"crashes, and a drain did not come about", []edit{waits("CrashLoopBackOff"), disrupted("EvictionByEvictionAPI", 0, corev1.ConditionFalse)}, true},
		{"refused by its kubelet", []edit{over(corev1.PodFailed, "NodeAffinity")}, false},
		{"evicted", []edit{over(corev1.PodFailed, "Evicted"), exited(137, 0)}, false},
		{"graceful shutdown of the node", []edit{over(corev1.PodFailed, "Terminated"), exited(143, 0), disrupted(corev1.PodReasonTerminationByKubelet, 1, yes)}, false},
		{"exited with 0 on a shutdown that nobody told of", []edit{over(corev1.PodSucceeded, ""), exited(0, 0)}, false},
	} {
		if got := FailedByItself(podOf(corev1.RestartPolicyAlways, c.edits)); got != c.want {
			t.Errorf("%s: failed by itself %t, want %t", c.name, got, c.want)
		}
	}
	if FailedByItself(nil) {
		t.Error("a pod that nobody has seen did not fail by itself")
	}
}
