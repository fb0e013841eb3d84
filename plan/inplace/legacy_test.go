package inplace

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// originals is a pod of tkestack/tapp whose gate was closed at patchTime, and whose spec
// was patched then from a:1 to the image.
func originals(image string) *corev1.Pod {
	pod := podWith(image)
	pod.Generation = 2
	pod.Status.ObservedGeneration = 0
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{running("app", "a:1", "1")}
	pod.Labels[tappv1.LabelTemplateHash] = "2473541281"
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(patchTime)}}
	return pod
}

// TestUpdateOfTheOriginal: tkestack/tapp records nothing of its updates but "true", and up to
// version 1.1.1 not even that.
func TestUpdateOfTheOriginal(t *testing.T) {
	old := running("app", "a:1", "1")
	late := old
	late.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(patchTime.Add(time.Second))}
	pulling := corev1.ContainerStatus{Name: "app", Image: "a:2", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}
	for _, marked := range []bool{false, true} {
		pod := func(change ...func(*corev1.Pod)) *corev1.Pod {
			p := originals("a:2")
			if marked {
				p.Annotations = map[string]string{tappv1.AnnotationInPlaceState: "true"}
			}
			for _, c := range change {
				c(p)
			}
			return p
		}
		open := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }
		tells := func(p *corev1.Pod) { p.Status.ObservedGeneration = 2 }
		behind := func(p *corev1.Pod) { p.Status.ObservedGeneration = 1 }
		expect(t, pod(), "ContainerNotRestarted")
		expect(t, pod(behind), "NotObserved")
		expect(t, pod(tells), "ContainerNotRestarted")
		expect(t, with(pod(), pulling), "ImagePullBackOff")
		expect(t, with(pod(), running("app", "a:2", "2")), "")
		expect(t, with(pod(), late), "")
		expect(t, with(pod(), reported("docker.io/library/a:2", "sha256:12", old)), "")
		expect(t, with(pod(tells), late), "")
		gateless := pod(func(p *corev1.Pod) { p.Spec.ReadinessGates, p.Status.Conditions = nil, nil })
		expect(t, gateless, "ContainerNotRestarted")
		// The gate is opened after the update; only the mark says that one is under way.
		want := ""
		if marked {
			want = "ContainerNotRestarted"
		}
		expect(t, pod(open), want)
		// It has a hash of ours, or none: it is not the original's.
		for _, hash := range []string{"v1-aaaaaaaaaaaaaaaa", ""} {
			expect(t, pod(func(p *corev1.Pod) {
				if p.Labels[tappv1.LabelTemplateHash] = hash; hash == "" {
					delete(p.Labels, tappv1.LabelTemplateHash)
				}
			}), "")
		}
	}
}

// TestUpdateAmidOneOfTheOriginal: the record tells of both.
func TestUpdateAmidOneOfTheOriginal(t *testing.T) {
	next, _ := upgraded(t, originals("a:2"), "a:3")
	next.Labels[tappv1.LabelTemplateHash] = someHashes.Template
	expect(t, next, "ContainerNotRestarted")
	expect(t, with(next, starts(1, running("app", "a:3", "2"))), "")
	back, _ := upgraded(t, originals("a:2"), "a:1")
	expectTime(t, back)
	expectTime(t, with(back, starts(1, running("app", "a:2", "2"))))
}

// TestKubeletWithoutGenerations: the API server counts them, the kubelet is older.
func TestKubeletWithoutGenerations(t *testing.T) {
	pod := podWith("a:1")
	pod.Status.ObservedGeneration = 0
	pod, _ = upgraded(t, pod, "a:2")
	expect(t, pod, "ContainerNotRestarted")
	expect(t, with(pod, starts(1, running("app", "a:2", "2"))), "")
	back, _ := upgraded(t, pod, "a:1")
	expect(t, back, "")
	expectTime(t, with(back, starts(1, running("app", "a:2", "2"))))
	expect(t, with(back, starts(2, running("app", "a:1", "3"))), "")
	// It crashed before the kubelet saw the update, which was then reverted: what
	// runs is right, and will not restart.
	crashed := with(pod, starts(1, running("app", "a:1", "2")))
	back, _ = upgraded(t, crashed, "a:1")
	expectTime(t, back)
}

func TestReadInPlaceState(t *testing.T) {
	for text, want := range map[string]bool{
		``: false, `null`: false, `[]`: false, `{`: false, `{"lastContainerStatuses":3}`: false, `{"updateTimestamp":"yesterday"}`: false,
		`{}`: true, `{"revision":"1","new":{"field":1}}`: true,
	} {
		pod := podWith("a:1")
		pod.Annotations = map[string]string{tappv1.AnnotationInPlaceState: text}
		if _, ok := ReadState(pod); ok != want {
			t.Errorf("%q is a state: %t", text, ok)
		}
		expect(t, pod, "")
	}
	if _, ok := ReadState(podWith("a:1")); ok {
		t.Error("a state without an annotation")
	}
}

// FuzzReadInPlaceState: whatever stands in the annotation, nothing panics, and an
// update from there can be recorded.
func FuzzReadInPlaceState(f *testing.F) {
	f.Add(`{"revision":"v1-a","updateTimestamp":"2026-01-02T03:04:05Z","lastContainerStatuses":{"app":{"imageID":"i","containerID":"c","image":"a:1","via":["",":"],"restartCount":-3}}}`, "a:2")
	f.Add(`{"lastContainerStatuses":{"app":null}}`, "sha256:@")
	f.Fuzz(func(t *testing.T, annotation, image string) {
		pod := podWith("a:1")
		pod.Annotations = map[string]string{tappv1.AnnotationInPlaceState: annotation}
		pod.Status.ContainerStatuses[0].Image = image
		if p := ProgressOf(pod, patchTime); p.Done != (p.Reason == "" && p.Why == "") {
			t.Errorf("%+v", p)
		}
		want := podWith(image)
		patch, err := Update{Pod: pod, Want: want, Hashes: someHashes, Now: patchTime}.Patch()
		if err != nil || !json.Valid(patch) {
			t.Errorf("%s, %v", patch, err)
		}
	})
}
