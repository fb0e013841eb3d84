package inplace

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestLegacyUpdate finishes what tkestack/tapp began, which recorded image ids.
func TestLegacyUpdate(t *testing.T) {
	legacy := func(imageID string) *corev1.Pod {
		pod := podWith("a:2")
		pod.Annotations = map[string]string{tappv1.AnnotationInPlaceState: `{"revision":"2473541281","updateTimestamp":"2026-01-02T03:04:05Z","lastContainerStatuses":{"app":{"imageID":"` + imageID + `"}}}`}
		return pod
	}
	old := running("app", "a:1", "1")
	expect(t, with(legacy(old.ImageID), old), "ContainerNotRestarted")
	expect(t, legacy(old.ImageID), "")
	// Another id, whatever its name.
	expect(t, with(legacy(old.ImageID), reported("sha256:12", "sha256:12", old)), "")
	// The same id: only the time tells.
	late := old
	late.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(patchTime.Add(time.Second))}
	expect(t, with(legacy(old.ImageID), late), "")
	// It had no container yet.
	expect(t, with(legacy(""), corev1.ContainerStatus{Name: "app"}), "ContainerNotStarted")
	// Updates that follow before it is done.
	next, _ := upgraded(t, with(legacy(old.ImageID), old), "a:3")
	expect(t, seen(next), "ContainerNotRestarted")
	expect(t, with(seen(next), starts(1, running("app", "a:3", "2"))), "")
	back, _ := upgraded(t, with(legacy(old.ImageID), old), "a:1")
	expectTime(t, seen(back))
	expectTime(t, with(seen(back), starts(1, running("app", "a:2", "2"))))
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
