package inplace

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestInitContainers: the original's fault 4. Their images were labelled done,
// and never applied.
func TestInitContainers(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := podWith("a:1")
	pod.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "s:1"}, {Name: "proxy", Image: "p:1", RestartPolicy: &always}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{running("setup", "s:1", "1"), running("proxy", "p:1", "1")}
	want := pod.DeepCopy()
	want.Spec.InitContainers[0].Image = "s:2"
	setup, restarts := patchTo(t, pod, want)
	if len(restarts) != 0 || setup.Spec.InitContainers[0].Image != "s:2" {
		t.Errorf("restarts %v, %v", restarts, setup.Spec.InitContainers)
	}
	expect(t, setup, "") // it runs at the next start
	want.Spec.InitContainers[1].Image = "p:2"
	proxy, restarts := patchTo(t, pod, want)
	if !slices.Equal(restarts, []string{"proxy"}) || proxy.Spec.InitContainers[0].Image != "s:2" || proxy.Spec.InitContainers[1].Image != "p:2" {
		t.Errorf("restarts %v, %v", restarts, proxy.Spec.InitContainers)
	}
	expect(t, seen(proxy), "ContainerNotRestarted")
	expect(t, with(seen(proxy), running("proxy", "p:2", "2")), "")
}

// TestInjectedSidecar: the original's fault 5. It patched images by index, so that
// an injected sidecar got the application's.
func TestInjectedSidecar(t *testing.T) {
	want := podWith("a:2")
	pod := podWith("sidecar:1", "a:1")
	pod.Spec.Containers[0].Name, pod.Spec.Containers[1].Name = "sidecar", "app"
	next, restarts := patchTo(t, pod, want)
	if len(next.Spec.Containers) != 2 || next.Spec.Containers[0].Image != "sidecar:1" || next.Spec.Containers[1].Image != "a:2" || !slices.Equal(restarts, []string{"app"}) {
		t.Errorf("restarts %v, %v", restarts, next.Spec.Containers)
	}
	_, err := Update{Pod: podWith("a:1"), Want: podWith("a:2", "h:1"), Hashes: someHashes, Now: patchTime}.Patch()
	if !errors.Is(err, ErrContainerMissing) || !strings.Contains(err.Error(), "spec.containers[helper]") {
		t.Errorf("a container that the pod lacks: %v", err)
	}
}

// TestEndedContainers are not started again, and nothing may wait for them.
func TestEndedContainers(t *testing.T) {
	onFailure := corev1.ContainerRestartPolicyOnFailure
	never := corev1.ContainerRestartPolicyNever
	rules := []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
	for _, test := range []struct {
		pod   corev1.RestartPolicy
		own   *corev1.ContainerRestartPolicy
		rules []corev1.ContainerRestartRule
		code  int32
		ended bool
	}{
		{pod: corev1.RestartPolicyAlways, code: 0, ended: false},
		{pod: corev1.RestartPolicyOnFailure, code: 0, ended: true},
		{pod: corev1.RestartPolicyOnFailure, code: 1, ended: false},
		{pod: corev1.RestartPolicyNever, code: 1, ended: true},
		{pod: corev1.RestartPolicyAlways, own: &never, code: 1, ended: true},
		{pod: corev1.RestartPolicyNever, own: &onFailure, code: 1, ended: false},
		{pod: corev1.RestartPolicyAlways, own: &never, rules: rules, code: 42, ended: false},
		{pod: corev1.RestartPolicyAlways, own: &never, rules: rules, code: 41, ended: true},
		{own: nil, code: 0, ended: false},
	} {
		pod := podWith("a:1")
		pod.Spec.RestartPolicy = test.pod
		pod.Spec.Containers[0].RestartPolicy, pod.Spec.Containers[0].RestartPolicyRules = test.own, test.rules
		alive, _ := upgraded(t, pod, "a:2")
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: test.code}}
		pod.Status.ContainerStatuses[0].Ready = false
		next, restarts := upgraded(t, pod, "a:2")
		if (len(restarts) == 0) != test.ended {
			t.Errorf("%+v: restarts %v", test, restarts)
		}
		if done := ProgressOf(seen(next), patchTime).Done; done != test.ended {
			t.Errorf("%+v: done %t", test, done)
		}
		// It ended after the patch, and the kubelet did not start another one.
		later := with(seen(alive), pod.Status.ContainerStatuses...)
		if done := ProgressOf(later, patchTime).Done; done {
			t.Errorf("%+v: stopped by the update, done %t", test, done)
		}
		if stopped := StoppedByUpdate(later); (stopped != "") != test.ended {
			t.Errorf("%+v: stopped by the update: %q", test, stopped)
		}
	}
}
