//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// With --delete-pod-after-app-finish=false an ended pod goes at once, while others
// run, and its instance stays as it ended. It restarts the controller.
func TestFinishedPodsGoAtOnce(t *testing.T) {
	stopController(t)
	restartController(t, "--delete-pod-after-app-finish=false")
	ns := namespace(t)
	create(t, ns, gen.TApp("job", gen.Replicas(3), gen.Pool("lasting", gen.RestartPolicy(corev1.RestartPolicyNever)), gen.Use("lasting", 2),
		gen.Pool("failing", ends(corev1.RestartPolicyNever, "1s", "3")), gen.Use("failing", 1),
		gen.Default(ends(corev1.RestartPolicyNever, "1s", "0"))))
	eventually(t, "the ended pods are gone", func(ctx context.Context) error {
		list, err := listPods(ctx, ns)
		if err == nil && (len(list) != 1 || list["job-2"] == nil) {
			err = fmt.Errorf("there are %d pods", len(list))
		}
		return err
	})
	tapp := instancesAre(t, ns, "job", map[string]tappv1.InstanceStatus{"0": succ, "1": failed, "2": running})
	if tapp.Status.AppStatus != tappv1.AppRunning {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	cluster.Never(t, time.Second, "what ended stays so", func(ctx context.Context) error {
		list, err := listPods(ctx, ns)
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("there are %d pods", len(list))
		}
		return err
	})
	stopController(t)
}

// An app that has ended goes on where somebody asks for it: a further instance
// runs, and one that was killed and started runs again, by its present template.
func TestFinishedAppRunsAgain(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, gen.TApp("job", gen.Replicas(2), gen.Default(ends(corev1.RestartPolicyNever, "1s", "0"))))
	instancesAre(t, ns, "job", map[string]tappv1.InstanceStatus{"0": succ, "1": succ})
	noPods(t, ns)

	// A new template alone runs nothing.
	change(t, ns, "job", gen.Default(gen.Env("DEMO_EXIT_CODE", "3")), gen.Killed(1))
	tapp := instancesAre(t, ns, "job", map[string]tappv1.InstanceStatus{"0": succ, "1": killed})
	if tapp.Status.AppStatus != tappv1.AppSucc {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	onlyPods(t, ns)
	change(t, ns, "job", start, gen.Replicas(3))
	first := podWhere(t, ns, "job-1", "runs", func(*corev1.Pod) string { return "" })
	tapp = instancesAre(t, ns, "job", map[string]tappv1.InstanceStatus{"0": succ, "1": failed, "2": failed})
	if tapp.Status.AppStatus != tappv1.AppFailed || first.Annotations[tappv1.AnnotationFailures] != "" {
		t.Errorf("status: %s; annotations of the first pod %v", cluster.StatusOf(tapp), first.Annotations)
	}
	c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionReady)
	if c == nil || c.Status != "False" || c.Reason != "InstancesFailed" {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	noPods(t, ns)
}

// A pod that its kubelet ends, since its time is up, is followed by another one
// after a while, and the instance is told to wait for that (fault 13). It runs before
// the tests that run beside each other: with all of them at work the kubelet told of
// the end so late that the next pod was due.
func TestBackoffOfARealPod(t *testing.T) {
	ns := namespace(t)
	create(t, ns, gen.TApp("app", gen.Replicas(1), gen.Default(gen.RestartPolicy(corev1.RestartPolicyOnFailure), func(p *corev1.PodTemplateSpec) {
		p.Spec.ActiveDeadlineSeconds, p.Spec.TerminationGracePeriodSeconds = new(int64(2)), new(int64(1))
	})))
	first := podWhere(t, ns, "app-0", "has failed", func(p *corev1.Pod) string {
		return unless(p.Status.Phase == corev1.PodFailed && len(p.Status.ContainerStatuses) == 1, "it has not")
	})
	tapp := instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": tappv1.InstancePodFailed})
	const why = "instance 0: the pod failed: DeadlineExceeded; the next one follows 10s after its end"
	if c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionReady); c == nil || c.Message != "0 of 1 instances are available, 0 follow their template; "+why {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	podGone(t, ns, "app-0", first.UID)
	next := podWhere(t, ns, "app-0", "comes again", func(*corev1.Pod) string { return "" })
	if waited := next.CreationTimestamp.Sub(first.CreationTimestamp.Time); next.Annotations[tappv1.AnnotationFailures] != "1" || waited < 11*time.Second {
		t.Errorf("it came again after %s, annotations %v", waited, next.Annotations)
	}
}
