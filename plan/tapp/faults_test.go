package tapp

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// The tests of this file are named after known faults of tkestack/tapp, as the
// design page numbers them.

// story is a TApp of so many instances whose template has the image web:2.
func story(replicas int32, pods ...podStory) *scenario {
	return &scenario{
		TApp: &tappv1.TApp{Spec: tappv1.TAppSpec{
			Replicas:     &replicas,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:     templateOf("web:2"),
			TemplatePool: map[string]corev1.PodTemplateSpec{"blue": templateOf("web:3")},
		}},
		Versions: versions,
		Pods:     pods,
	}
}

// ops of a plan, as "Op id".
func ops(p Plan) []string {
	out := []string{}
	for _, a := range p.Actions {
		out = append(out, string(a.Op)+" "+a.ID)
	}
	return out
}

func wantOps(t *testing.T, p Plan, want ...string) {
	t.Helper()
	if got := ops(p); !slices.Equal(got, want) && len(got)+len(want) > 0 {
		t.Errorf("actions are %q, want %q", got, want)
	}
}

// All pods are down, and neither budget has room: the fix gets through all the same.
func TestFault01_UpdateFixesWhatIsDown(t *testing.T) {
	for _, rolling := range []string{"", "blue"} {
		s := story(3, podStory{IDs: "0-2", From: "image", Ready: "not"})
		s.TApp.Spec.UpdateStrategy.Template = rolling // the instances are of default: by rolling, then by force
		s.TApp.Spec.UpdateStrategy.ForceUpdate.MaxUnavailable = new(intstr.FromInt32(1))
		wantOps(t, Compute(s.input(t)), "Drain 0", "Drain 1", "Drain 2")
	}
}

// One create fails when a whole TApp is started again. The next plan repeats it.
func TestFault02_StartAgainAfterFailedCreate(t *testing.T) {
	s := story(3, podStory{IDs: "0,2"})
	s.TApp.Status.Statuses = map[string]tappv1.InstanceStatus{"0": "Killed", "1": "Killed", "2": "Killed"}
	wantOps(t, Compute(s.input(t)), "Create 1")
}

// At start nothing is known of nodes. That is no evidence of anything.
func TestFault03_NothingKnownOfNodes(t *testing.T) {
	s := story(1, podStory{IDs: "0", Dying: "1h ago"})
	s.TApp.Spec.ForceDeletePod = true
	p := Compute(s.input(t))
	wantOps(t, p)
	if !slices.Equal(p.Evidence, []string{"node-1"}) || p.Wait == 0 {
		t.Errorf("evidence %v, wait %s", p.Evidence, p.Wait)
	}
	s.Nodes = map[string]nodeStory{"node-1": {}}
	s.TApp = s.TApp.DeepCopy()
	wantOps(t, Compute(s.input(t)))
}

// The image of an init container is changed, and not only said to be: it runs in another
// pod or, where it may wait for that, is in the spec of this one.
func TestFault04_InitContainerImages(t *testing.T) {
	s := story(1, podStory{IDs: "0", From: "init", Gate: "closed 5s", Ready: "not 4s"})
	wantOps(t, Compute(s.input(t)), "Delete 0")
	s.TApp.Spec.UpdateStrategy.InPlaceUpdate.InitImages = tappv1.InitImagesNextStart
	p := Compute(s.input(t))
	wantOps(t, p, "UpdateInPlace 0")
	pod := p.Actions[0].Pod.DeepCopy()
	merge(t, pod, p.Actions[0].Patch)
	if image := pod.Spec.InitContainers[0].Image; image != "setup:2" {
		t.Errorf("the init container's image is %s", image)
	}
	if want := newPod(t, s.TApp, 0).Labels[tappv1.LabelTemplateHash]; pod.Labels[tappv1.LabelTemplateHash] != want {
		t.Errorf("the hash is %s, want %s", pod.Labels[tappv1.LabelTemplateHash], want)
	}
}

// No write touches the condition Ready, which is the kubelet's.
func TestFault07_ReadyIsTheKubelets(t *testing.T) {
	s := story(5,
		podStory{IDs: "0", From: "image"},
		podStory{IDs: "1", From: "image", Gate: "closed 5s", Ready: "not 4s"},
		podStory{IDs: "2", From: "image", Patched: "default", Kubelet: "done", Gate: "closed 5s", Ready: "not 4s"},
		podStory{IDs: "3", From: "labels"})
	s.TApp.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromString("100%"))
	p := Compute(s.input(t))
	wantOps(t, p, "Drain 0", "UpdateInPlace 1", "Undrain 2", "Relabel 3", "Create 4")
	for _, a := range p.Actions {
		pod := a.Pod.DeepCopy()
		for _, patch := range [][]byte{a.Patch, a.Status} {
			if patch != nil {
				merge(t, pod, patch)
			}
		}
		if !equality.Semantic.DeepEqual(conditionOf(pod, corev1.PodReady), conditionOf(a.Pod, corev1.PodReady)) {
			t.Errorf("%s %s changes Ready: %s%s", a.Op, a.ID, a.Patch, a.Status)
		}
	}
}

// Foreground deletion waits for the pods to go. None is made anew.
func TestFault08_ForegroundDeletion(t *testing.T) {
	s := story(4, podStory{IDs: "0", Dying: "in 20s"}, podStory{IDs: "1"}, podStory{IDs: "2", Phase: corev1.PodFailed, Ended: "1h"})
	s.TApp.DeletionTimestamp = new(ago(time.Minute))
	s.TApp.Finalizers = []string{metav1.FinalizerDeleteDependents}
	wantOps(t, Compute(s.input(t)))
}

// Every write to a pod names the pod that was observed: on another one of the same
// name it fails.
func TestFault09_WritesAreConditionalOnTheUID(t *testing.T) {
	s := story(7,
		podStory{IDs: "0", From: "image"},
		podStory{IDs: "1", From: "image", Gate: "closed 5s", Ready: "not 4s"},
		podStory{IDs: "2", Gate: "closed 5s", Ready: "not 4s"},
		podStory{IDs: "3", From: "labels"},
		podStory{IDs: "4", Owner: "none"},
		podStory{IDs: "5", Labels: map[string]*string{"app": new("debug")}},
		podStory{IDs: "6", Phase: corev1.PodFailed, Ended: "1h"},
		podStory{IDs: "7"},
		podStory{IDs: "8", Dying: "1m ago"})
	s.TApp.Spec.ForceDeletePod = true
	s.TApp.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionForceDeleted, Status: metav1.ConditionTrue, Message: "node node-1 does not exist any more"}}
	s.Nodes = map[string]nodeStory{"node-1": {Gone: true}}
	s.TApp.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromString("100%"))
	p := Compute(s.input(t))
	wantOps(t, p, "Drain 0", "UpdateInPlace 1", "Undrain 2", "Relabel 3", "Adopt 4", "Release 5", "Replace 6", "Delete 7", "ForceDelete 8")
	for _, a := range p.Actions {
		uid := "pod-" + a.ID
		if string(a.UID()) != uid {
			t.Errorf("%s %s: UID %s", a.Op, a.ID, a.UID())
		}
		for _, patch := range [][]byte{a.Patch, a.Status} {
			if patch != nil && a.Op != OpReplace && !strings.Contains(string(patch), `"metadata":{"uid":"`+uid+`"`) {
				t.Errorf("%s %s: patch %s", a.Op, a.ID, patch)
			}
		}
	}
}

// A template whose labels the selector misses, or that has none, makes no pods, and
// that is said; it does not make one after the other.
func TestFault10_SelectorMissesTemplate(t *testing.T) {
	for _, labels := range []map[string]string{{"app": "other"}, nil} {
		s := story(2, podStory{IDs: "1", From: "default"})
		blue := templateOf("web:3")
		blue.Labels = labels
		s.TApp.Spec.TemplatePool["blue"] = blue
		s.TApp.Spec.Templates = map[string]string{"0": "blue", "1": "blue"}
		p := Compute(s.input(t))
		wantOps(t, p)
		if len(p.Problems) != 1 || p.Problems[0].Field != "spec.templatePool[blue].metadata.labels[app]" || p.Problems[0].Reason != ReasonSelectorMismatch {
			t.Errorf("problems %+v", p.Problems)
		}
	}
}

// Labels and annotations that leave the template leave the pod, and those that
// others put there stay.
func TestFault12_RemovedMetadata(t *testing.T) {
	s := story(1, podStory{IDs: "0", From: "labels", Labels: map[string]*string{"mine": new("yes")}})
	p := Compute(s.input(t))
	wantOps(t, p, "Relabel 0")
	pod := p.Actions[0].Pod.DeepCopy()
	if pod.Labels["old"] == "" || pod.Annotations["team"] == "" {
		t.Fatalf("labels %v, annotations %v", pod.Labels, pod.Annotations)
	}
	merge(t, pod, p.Actions[0].Patch)
	if _, ok := pod.Labels["old"]; ok || pod.Labels["mine"] != "yes" {
		t.Errorf("labels %v", pod.Labels)
	}
	if _, ok := pod.Annotations["team"]; ok {
		t.Errorf("annotations %v", pod.Annotations)
	}
}

// Pods that fail over and over follow each other after longer and longer delays.
func TestFault13_Backoff(t *testing.T) {
	s := story(1)
	in, at := s.input(t), now
	var delays []time.Duration
	pod := s.make(t, 0, "", true)
	for range 8 {
		pod.Status.Phase, pod.Status.StartTime = corev1.PodFailed, new(metav1.NewTime(at))
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)}}
		in.Pods, in.Now = []*corev1.Pod{pod}, at
		p := Compute(in)
		wantOps(t, p)
		delays = append(delays, p.Wait)
		at = at.Add(p.Wait)
		in.Now = at
		p = Compute(in)
		wantOps(t, p, "Replace 0")
		pod = p.Actions[0].Pod
		start(pod, 1)
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	if !slices.Equal(delays, want) {
		t.Errorf("delays %v", delays)
	}
}

// The next pod follows one that ended after that was deleted, and its creation may fail:
// how often the instance failed in a row is in the status by then, and goes from there
// when a pod tells of it.
func TestFailuresOutliveTheirPod(t *testing.T) {
	in := story(2, podStory{IDs: "0", Phase: corev1.PodFailed, Age: "1m", Ended: "4s", Failures: 2}, podStory{IDs: "1"}).input(t)
	p := Compute(in)
	wantOps(t, p) // it waits
	in.TApp.Status, in.Now = p.Status, now.Add(p.Wait)
	p = Compute(in)
	wantOps(t, p, "Replace 0")
	next := p.Actions[0].Pod
	in.TApp.Status, in.Pods = p.Status, in.Pods[1:]
	for range 2 { // the creation fails, and again
		p = Compute(in)
		wantOps(t, p, "Create 0")
		if got := p.Actions[0].Pod.Annotations[tappv1.AnnotationFailures]; got != "3" {
			t.Errorf("the pod that is created tells of %q failures", got)
		}
		in.TApp.Status = p.Status
	}
	in.Pods = append(in.Pods, next)
	if p = Compute(in); len(p.Status.Failures) > 0 {
		t.Errorf("there is the next pod, and the status tells of failures %v", p.Status.Failures)
	}
}

// The input is the cache's: it is not changed by a plan (the race detector sees
// that here), nor by changes of what a plan gives.
func TestFault15_InputIsNotChanged(t *testing.T) {
	s := story(6,
		podStory{IDs: "0", From: "image"},
		podStory{IDs: "1", From: "labels"},
		podStory{IDs: "2", Phase: corev1.PodFailed, Ended: "1h", Failures: 1},
		podStory{IDs: "3", Owner: "none"})
	s.TApp.Spec.Template.Labels[tappv1.LabelTemplateHash] = "stamp"
	s.TApp.Spec.Selector.MatchLabels[tappv1.LabelTemplateHash] = "stamp" // as tkestack/tapp stored it
	s.TApp.Spec.NeverMigrate = true
	s.TApp.Status.Nodes = map[string]string{"4": "node-1"}
	s.TApp.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionReady, Status: metav1.ConditionTrue}}
	s.TApp.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"tier": "db"}}}}
	in := s.input(t)
	before := copyInput(in)

	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			p := Compute(in)
			for _, a := range p.Actions {
				switch {
				case a.Claim != nil:
					clear(a.Claim.Labels)
				case a.Op == OpCreate || a.Op == OpReplace:
					clear(a.Pod.Labels)
					clear(a.Pod.Annotations)
					a.Pod.Spec.Containers[0].Image = "changed"
				}
			}
			clear(p.Status.Statuses)
			clear(p.Status.Nodes)
			for i := range p.Status.Conditions {
				p.Status.Conditions[i].Reason = "Changed"
			}
		})
	}
	all.Wait()
	if !reflect.DeepEqual(before, in) {
		t.Error("the input was changed")
	}
}
