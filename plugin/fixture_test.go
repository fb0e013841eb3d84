package plugin

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// webTApp is a TApp whose pods run web:1, or canary:1 with the template canary.
func webTApp(replicas int32, edits ...func(*tappv1.TApp)) *tappv1.TApp {
	t := tappOf(replicas)
	t.Generation, t.Status.ObservedGeneration = 1, 1
	t.Spec.Template = templateOf("web:1")
	t.Spec.TemplatePool = map[string]corev1.PodTemplateSpec{"canary": templateOf("canary:1")}
	for _, edit := range edits {
		edit(t)
	}
	return t
}

func templateOf(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

func withImage(image string) func(*tappv1.TApp) {
	return func(t *tappv1.TApp) { t.Spec.Template = templateOf(image) }
}

// onlyOnce: containers that ended stay so, and an end of a pod is one of its instance.
func onlyOnce(t *tappv1.TApp) { t.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever }

func withBudgets(rolling, forced intstr.IntOrString) func(*tappv1.TApp) {
	return func(t *tappv1.TApp) {
		t.Spec.UpdateStrategy.MaxUnavailable, t.Spec.UpdateStrategy.ForceUpdate.MaxUnavailable = &rolling, &forced
	}
}

// podOf is the available pod that a template of the TApp makes for an instance.
func podOf(t *tappv1.TApp, template string, id int, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := plan.PodOf(t, template, id)
	pod.UID = types.UID("uid of " + pod.Name)
	pod.Namespace = t.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(t, tappv1.GroupVersionKind())}
	hourAgo := metav1.NewTime(time.Now().Add(-time.Hour))
	pod.CreationTimestamp = hourAgo
	pod.Spec.NodeName = "node-1"
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1",
		Conditions: []corev1.PodCondition{
			{Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionTrue, LastTransitionTime: hourAgo},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: hourAgo},
		},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: pod.Spec.Containers[0].Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: hourAgo}}}}}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// orphaned makes a pod whose TApp was deleted without it.
func orphaned(pod *corev1.Pod) { pod.OwnerReferences = nil }

// notReady makes a pod that does not become ready.
func notReady(pod *corev1.Pod) {
	pod.Status.Conditions[1].Status = corev1.ConditionFalse
	pod.Status.ContainerStatuses[0].Ready = false
}

// failed makes a pod that ended, and is not followed by another one.
func failed(pod *corev1.Pod) {
	notReady(pod)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", FinishedAt: metav1.Now()}}
}

// observe a TApp by the default policy, which is known.
func observe(t *testing.T, tapp *tappv1.TApp, pods ...*corev1.Pod) *observed {
	t.Helper()
	return observeBy(t, policy{Policy: plan.Policy{DeletePodAfterAppFinish: true}}, tapp, pods...)
}

func observeBy(t *testing.T, p policy, tapp *tappv1.TApp, pods ...*corev1.Pod) *observed {
	t.Helper()
	s := &session{namespace: tapp.Namespace, published: &p, resize: new(true), apps: fake.NewClientset().AppsV1()}
	o, err := s.compute(t.Context(), tapp, pods)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// text of an error, "" if there is none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
