package tapp

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
)

// doubt whether the container of a pod has restarted, since a minute.
func doubt(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	status := pod.Status.ContainerStatuses[0]
	text, err := json.Marshal(inplace.State{UpdateTimestamp: ago(time.Minute), LastContainerStatuses: map[string]inplace.LastContainerStatus{
		"app": {ContainerID: status.ContainerID, ImageID: status.ImageID, RestartCount: status.RestartCount, Via: []string{"web:1", "web:2"}}}})
	if err != nil {
		t.Fatal(err)
	}
	setAnnotation(pod, tappv1.AnnotationInPlaceState, string(text))
}

// TestPlanWaitsForTheKubelet: the controller looks again when the time is over, and
// opens the gate then. So it is without a gate.
func TestPlanWaitsForTheKubelet(t *testing.T) {
	for gate, want := range map[string][]string{"closed 5m": {"Undrain 0"}, "none": nil} {
		s := story(1, podStory{IDs: "0", From: "image", Patched: "default", Gate: gate, Ready: "not 1m"})
		in := s.input(t)
		doubt(t, in.Pods[0])
		p := Compute(in)
		wantOps(t, p)
		if p.Wait != 31*time.Second || p.Instances[0].Reason != "ContainerNotRestarted" {
			t.Errorf("gate %s: waits %s, %+v", gate, p.Wait, p.Instances[0])
		}
		in.Now = now.Add(31 * time.Second)
		p = Compute(in)
		wantOps(t, p, want...)
		if p.Instances[0].Reason == "ContainerNotRestarted" {
			t.Errorf("gate %s: %+v", gate, p.Instances[0])
		}
	}
}

// TestBudgetInDoubt: a pod without a gate that is ready, and perhaps about to
// restart, is not counted on; but to interrupt it costs as much as if it were not.
func TestBudgetInDoubt(t *testing.T) {
	for _, test := range []struct {
		budget    int32
		ready     []string // of the pods after the one in doubt
		want      []string
		available int32
	}{
		{1, []string{"not"}, nil, 0},
		{1, []string{""}, []string{"UpdateInPlace 0"}, 1},
		{2, []string{"", ""}, []string{"UpdateInPlace 0", "UpdateInPlace 1"}, 2},
	} {
		s := story(int32(1+len(test.ready)), podStory{IDs: "0", From: "image", Gate: "none"})
		for k, ready := range test.ready {
			s.Pods = append(s.Pods, podStory{IDs: strconv.Itoa(k + 1), From: "image", Gate: "none", Ready: ready})
		}
		if test.ready[0] == "not" {
			s.Pods[1].From = ""
		}
		s.TApp.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(test.budget))
		in := s.input(t)
		doubt(t, in.Pods[0])
		p := Compute(in)
		wantOps(t, p, test.want...)
		if p.Status.AvailableReplicas != test.available {
			t.Errorf("%d are available, want %d", p.Status.AvailableReplicas, test.available)
		}
	}
}
