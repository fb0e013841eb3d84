package tapp

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/template"
)

// A pod that lacks a container of its template, although its hash says otherwise,
// cannot be patched into it: it is recreated. Where that is forbidden it is not
// drained either, over and over.
func TestPodLacksContainer(t *testing.T) {
	for _, test := range []struct {
		policy tappv1.InPlaceUpdatePolicy
		gate   string
		want   []string
	}{
		{tappv1.InPlaceIfPossible, "", []string{"Delete 0"}},
		{tappv1.InPlaceIfPossible, "closed 5s", []string{"Delete 0"}},
		{tappv1.InPlaceOnly, "", nil},
		{tappv1.InPlaceOnly, "closed 5s", []string{"Undrain 0"}},
	} {
		s := story(1, podStory{IDs: "0", From: "image", Gate: test.gate})
		s.TApp.Spec.UpdateStrategy.InPlaceUpdate.Policy = test.policy
		in := s.input(t)
		in.Pods[0].Spec.Containers[0].Name = "other"
		sidecar := *in.Pods[0].Spec.Containers[0].DeepCopy()
		in.TApp.Spec.Template.Spec.Containers = append(in.TApp.Spec.Template.Spec.Containers, sidecar)
		h, err := template.Hash(&in.TApp.Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		in.Pods[0].Labels[tappv1.LabelUniqHash] = h.Uniq
		in.TApp.Spec.Template.Spec.Containers[1].Image = "web:2"
		p := Compute(in)
		wantOps(t, p, test.want...)
		if test.policy == tappv1.InPlaceOnly && !slices.ContainsFunc(p.Problems, func(x Problem) bool { return x.Reason == ReasonInPlaceOnly }) {
			t.Errorf("problems %v", p.Problems)
		}
	}
}

// inplace.CertainlyDone says yes only where inplace.ProgressOf does, and spares it a look in the
// cases that are a plan's bread and butter.
func TestCertainlyDone(t *testing.T) {
	for about, test := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"restarted, and ready":          {func(*corev1.Pod) {}, true},
		"no record":                     {func(p *corev1.Pod) { p.Annotations = nil }, true},
		"reported in full":              {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Image = "docker.io/library/web:2" }, true},
		"reported by another name":      {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Image = "mirror/web:2" }, false},
		"not seen":                      {func(p *corev1.Pod) { p.Generation++ }, false},
		"a kubelet that does not tell":  {func(p *corev1.Pod) { p.Status.ObservedGeneration = 0 }, false},
		"the container of before":       {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://web-0-app-1" }, false},
		"no container yet":              {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "" }, false},
		"no status":                     {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, false},
		"not ready":                     {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false }, false},
		"not started":                   {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Started = new(false) }, false},
		"a sidecar among the init ones": {func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways) }, false},
	} {
		s := story(1, podStory{IDs: "0", From: "image", Patched: "default", Kubelet: "done"})
		pod := s.input(t).Pods[0]
		test.change(pod)
		if got := inplace.CertainlyDone(pod); got != test.want {
			t.Errorf("%s: %t", about, got)
		}
		if update := inplace.ProgressOf(pod, now); !update.Done && inplace.CertainlyDone(pod) {
			t.Errorf("%s: %s", about, update.Why)
		}
	}
}
