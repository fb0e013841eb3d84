package tapp

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ending"
)

// TestEnds: what follows each way in which a pod ends, by its restartPolicy, with
// neverMigrate and without, and whatever a former version stored of the instance. Where
// another pod follows, it does so after a delay, and with neverMigrate on the same node.
func TestEnds(t *testing.T) {
	const (
		always    = corev1.RestartPolicyAlways
		onFailure = corev1.RestartPolicyOnFailure
		never     = corev1.RestartPolicyNever
		kubelet   = corev1.PodReasonTerminationByKubelet
	)
	finals := func(policies ...corev1.RestartPolicy) map[corev1.RestartPolicy]bool {
		out := map[corev1.RestartPolicy]bool{}
		for _, p := range policies {
			out[p] = true
		}
		return out
	}
	for _, way := range []struct {
		name  string
		phase corev1.PodPhase
		// reason of the pod's status, and of DisruptionTarget, which is since 9 minutes ago.
		reason, disruption string
		// ended so long ago; 0: its kubelet reports no container.
		ended  time.Duration
		final  map[corev1.RestartPolicy]bool
		action string // of the others
	}{
		{"ordinary failure", corev1.PodFailed, "", "", 9 * time.Minute, finals(never), "PodFailed: the pod failed"},
		{"ordinary success", corev1.PodSucceeded, "", "", 9 * time.Minute, finals(onFailure, never), "PodEnded: the pod ended"},
		{"over the limit of its own volume", corev1.PodFailed, "Evicted", "", 9 * time.Minute, finals(never), "PodFailed: the pod failed: Evicted"},
		{"graceful node shutdown", corev1.PodFailed, "Terminated", kubelet, 9*time.Minute + 2*time.Second, nil, "PodLost: the pod was disrupted: Terminated"},
		{"graceful node shutdown, exited with 0", corev1.PodSucceeded, "", kubelet, 9 * time.Minute, nil, "PodLost: the pod was disrupted: TerminationByKubelet"},
		{"eviction by pressure", corev1.PodFailed, "Evicted", kubelet, 9 * time.Minute, nil, "PodLost: the pod was disrupted: Evicted"},
		{"preemption by a kubelet", corev1.PodFailed, "Preempting", kubelet, 9 * time.Minute, nil, "PodLost: the pod was disrupted: Preempting"},
		{"preemption by a scheduler", corev1.PodFailed, "", corev1.PodReasonPreemptionByScheduler, 8 * time.Minute, nil, "PodLost: the pod was disrupted: PreemptionByScheduler"},
		{"taint", corev1.PodFailed, "", "DeletionByTaintManager", 8 * time.Minute, nil, "PodLost: the pod was disrupted: DeletionByTaintManager"},
		{"taint, exited with 0", corev1.PodSucceeded, "", "DeletionByTaintManager", 9 * time.Minute, nil, "PodLost: the pod was disrupted: DeletionByTaintManager"},
		{"taint of what had failed", corev1.PodFailed, "", "DeletionByTaintManager", 10 * time.Minute, finals(never), "PodFailed: the pod failed"},
		{"taint of what had succeeded", corev1.PodSucceeded, "", "DeletionByTaintManager", 10 * time.Minute, finals(onFailure, never), "PodEnded: the pod ended"},
		{"refused by its kubelet", corev1.PodFailed, "OutOfcpu", "", 0, nil, "PodLost: its kubelet refused the pod: OutOfcpu"},
	} {
		for _, policy := range []corev1.RestartPolicy{"", always, onFailure, never} {
			for _, migrates := range []bool{true, false} {
				for _, stored := range []tappv1.InstanceStatus{"", tappv1.InstanceRunning, tappv1.InstanceFailed, tappv1.InstanceSucc} {
					t.Run(fmt.Sprintf("%s/%s/migrates=%t/%s", way.name, policy, migrates, stored), func(t *testing.T) {
						in := storyOf(t, policy, migrates, stored)
						pod := in.Pods[0]
						pod.Status.Phase, pod.Status.Reason, pod.Status.StartTime = way.phase, way.reason, new(ago(9*time.Minute))
						pod.Status.ContainerStatuses = nil
						if way.ended > 0 {
							pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{
								Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(way.ended)}}}}
						}
						if way.disruption != "" {
							pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
								Reason: way.disruption, LastTransitionTime: ago(9 * time.Minute)})
						}
						p := Compute(in)
						judge(t, in, p)
						if way.final[policy] || !migrates && policy == onFailure && way.final[never] {
							wantCompleted(t, p, endOf(pod))
							return
						}
						wantOps(t, p, "Replace 0")
						a := &p.Actions[0]
						if got := a.Reason + ": " + a.Why; got != way.action || a.Pod.Annotations[tappv1.AnnotationFailures] != "1" {
							t.Errorf("%s, after %s failures; want %s, after 1", got, a.Pod.Annotations[tappv1.AnnotationFailures], way.action)
						}
						wantTie(t, a.Pod, !migrates)
						in.Now = ending.TimeOf(pod).Add(ending.DelayMin - time.Second)
						if p = Compute(in); len(p.Actions) > 0 || p.Instances[0].Reason != "Backoff" {
							t.Errorf("the next one does not wait, %s: %s", p.Instances[0].Reason, p.Instances[0].Why)
						}
					})
				}
			}
		}
	}
}

// TestEndsWithoutPod: a pod that is deleted, or gone, does not tell how it ended. What the
// status has does, unless the restartPolicy is Always: then it is a former version's.
func TestEndsWithoutPod(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{"", corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever} {
		for _, stored := range []tappv1.InstanceStatus{"", tappv1.InstanceRunning, tappv1.InstancePodFailed, tappv1.InstanceFailed, tappv1.InstanceSucc} {
			for _, migrates := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/migrates=%t", policy, stored, migrates), func(t *testing.T) {
					final := isEnd(stored) && (policy == corev1.RestartPolicyOnFailure || policy == corev1.RestartPolicyNever)
					going := storyOf(t, policy, migrates, stored)
					pod := going.Pods[0] // collected with its node, or evicted for a taint
					pod.DeletionTimestamp, pod.Status.Phase = new(metav1.NewTime(now.Add(time.Minute))), corev1.PodFailed
					pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", LastTransitionTime: ago(time.Second)})
					p := Compute(going)
					if wantOps(t, p); final {
						wantCompleted(t, p, stored)
					} else if got := p.Status.Statuses["0"]; got != tappv1.InstanceKilling || p.Desired != 1 {
						t.Errorf("%s, and %d are to run", got, p.Desired)
					}

					gone := storyOf(t, policy, migrates, stored)
					gone.Pods = nil
					if p = Compute(gone); final {
						wantOps(t, p)
						wantCompleted(t, p, stored)
						return
					}
					if wantOps(t, p, "Create 0"); len(p.Actions) > 0 {
						wantTie(t, p.Actions[0].Pod, !migrates)
					}
				})
			}
		}
	}
}

// storyOf a TApp with one instance that ran on node-1.
func storyOf(t *testing.T, policy corev1.RestartPolicy, migrates bool, stored tappv1.InstanceStatus) Input {
	t.Helper()
	s := story(1, podStory{IDs: "0", Node: "node-1"})
	s.TApp.Spec.NeverMigrate, s.TApp.Spec.Template.Spec.RestartPolicy = !migrates, policy
	in := s.input(t)
	in.Policy.DeletePodAfterAppFinish = false
	if stored != "" {
		in.TApp.Status.Statuses = map[string]tappv1.InstanceStatus{"0": stored}
	}
	if !migrates {
		in.TApp.Status.Nodes = map[string]string{"0": "node-1"}
	}
	return in
}

func wantCompleted(t *testing.T, p Plan, want tappv1.InstanceStatus) {
	t.Helper()
	if got := p.Status.Statuses["0"]; got != want || p.Status.CompletedReplicas != 1 || p.Desired != 0 {
		t.Errorf("%s, %d completed and %d are to run; want %s, 1 and 0", got, p.Status.CompletedReplicas, p.Desired, want)
	}
	for _, a := range p.Actions {
		if a.Op != OpDelete {
			t.Errorf("%s after the end", a.Op)
		}
	}
}

func wantTie(t *testing.T, pod *corev1.Pod, tied bool) {
	t.Helper()
	if got := pod.Spec.Affinity != nil; got != tied {
		t.Errorf("tied to a node: %t, want %t", got, tied)
	}
}

// TestCompletedIsTold: that some have come to their end is told wherever it is told how
// many are available.
func TestCompletedIsTold(t *testing.T) {
	for _, c := range []struct {
		statuses string // of three instances
		want     string
	}{
		{"Running Running Running", "True Available: all 3 instances are available and follow their template"},
		{"Running Running Succ", "True Available: 2 of 3 available, 1 completed"},
		{"Succ Succ Succ", "True Available: 0 of 3 available, 3 completed"},
		{"Running Succ Failed", "False InstancesFailed: 1 of 3 available, 2 completed: 1 instances failed, and stay as they ended"},
		{"Running Pending Succ", "False NotAvailable: 1 of 2 instances are available, 2 follow their template, 1 completed; instance 1: its pod is not ready"},
	} {
		s := story(3, podStory{IDs: "0-2"})
		s.TApp.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		in := s.input(t)
		var statuses [3]tappv1.InstanceStatus
		if _, err := fmt.Sscan(c.statuses, &statuses[0], &statuses[1], &statuses[2]); err != nil {
			t.Fatal(err)
		}
		for k, pod := range in.Pods {
			switch statuses[k] {
			case tappv1.InstanceSucc:
				pod.Status.Phase = corev1.PodSucceeded
			case tappv1.InstanceFailed:
				pod.Status.Phase = corev1.PodFailed
			case tappv1.InstancePending:
				conditionOf(pod, corev1.PodReady).Status = corev1.ConditionFalse
			}
		}
		p := Compute(in)
		got := ""
		for _, condition := range p.Status.Conditions {
			if condition.Type == tappv1.ConditionReady {
				got = fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", c.statuses, got, c.want)
		}
	}
}
