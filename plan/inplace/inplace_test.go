package inplace

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

var patchTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var someHashes = template.Hashes{Template: "v1-aaaaaaaaaaaaaaaa", Uniq: "v1-bbbbbbbbbbbbbbbb"}

// podWith has containers "app", ... with these images, running and ready, as a
// kubelet of 1.33 or later reports them.
func podWith(images ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tapp-0", UID: "uid-1", Generation: 1,
		Labels: map[string]string{tappv1.LabelTemplateHash: "v1-0000000000000000"}}}
	pod.Status.ObservedGeneration = 1
	for i, image := range images {
		name := []string{"app", "helper", "third"}[i]
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: image})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, running(name, image, "1"))
	}
	return pod
}

func running(name, image, id string) corev1.ContainerStatus {
	started := true
	return corev1.ContainerStatus{Name: name, Image: "docker.io/library/" + image, ImageID: "docker.io/library/x@sha256:" + image,
		ContainerID: "containerd://" + name + id, Ready: true, Started: &started,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(patchTime.Add(-time.Hour))}}}
}

// upgraded patches the pod to other images, and returns the pod and the restarts.
func upgraded(t *testing.T, pod *corev1.Pod, images ...string) (*corev1.Pod, []string) {
	t.Helper()
	want := pod.DeepCopy()
	for i, image := range images {
		want.Spec.Containers[i].Image = image
	}
	return patchTo(t, pod, want)
}

func patchTo(t *testing.T, pod, want *corev1.Pod) (*corev1.Pod, []string) {
	t.Helper()
	before := pod.DeepCopy()
	images, err := imagesPatch(pod, &want.Spec)
	if err != nil {
		t.Fatal(err)
	}
	update := Update{Pod: pod, Want: want, Hashes: someHashes, Now: patchTime}
	patch, err := update.Patch()
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(pod, before) {
		t.Fatal("Patch changed its argument")
	}
	var restarts []string
	for _, c := range update.restarts(images) {
		restarts = append(restarts, c.Name)
	}
	next := applyPatch(t, pod, patch)
	if !equality.Semantic.DeepEqual(next.Spec, pod.Spec) && pod.Generation != 0 {
		next.Generation++
	}
	return next, restarts
}

func applyPatch(t *testing.T, pod *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	old, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(old, patch, corev1.Pod{})
	if err != nil {
		t.Fatalf("%v: %s", err, patch)
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(merged, next); err != nil {
		t.Fatal(err)
	}
	return next
}

// seen is the pod after the kubelet saw its newest generation.
func seen(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	if pod.Generation != 0 {
		pod.Status.ObservedGeneration = pod.Generation
	}
	return pod
}

// with is the pod with another container status.
func with(pod *corev1.Pod, statuses ...corev1.ContainerStatus) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, s := range statuses {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
			for i := range list {
				if list[i].Name == s.Name {
					list[i] = s
				}
			}
		}
	}
	return pod
}

// starts marks a status as that of the nth restart.
func starts(n int32, s corev1.ContainerStatus) corev1.ContainerStatus {
	s.RestartCount = n
	return s
}

func reported(image, id string, s corev1.ContainerStatus) corev1.ContainerStatus {
	s.Image, s.ImageID = image, id
	return s
}

// expect says why the update is not done, both at once and after a while.
func expect(t *testing.T, pod *corev1.Pod, reason string) {
	t.Helper()
	expectAt(t, pod, patchTime, reason)
	expectAt(t, pod, later, reason)
}

// expectTime: that the container has not restarted says nothing before its kubelet
// has had the time for it.
func expectTime(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	expectAt(t, pod, patchTime, "ContainerNotRestarted")
	left := ProgressOf(pod, patchTime).Left
	if left != 91*time.Second {
		t.Errorf("looks again after %s", left)
	}
	expectAt(t, pod, patchTime.Add(left-time.Millisecond), "ContainerNotRestarted")
	expectAt(t, pod, patchTime.Add(left), "")
}

// later a kubelet has had time enough.
var later = patchTime.Add(time.Hour)

func expectAt(t *testing.T, pod *corev1.Pod, now time.Time, reason string) {
	t.Helper()
	got := ProgressOf(pod, now)
	if got.Done != (reason == "") || got.Reason != reason || got.Done != (got.Why == "") || got.Done && got.Left != 0 {
		t.Errorf("%+v, want %q", got, reason)
	}
}

func TestUpdateOfOneImage(t *testing.T) {
	pod := podWith("a:1", "h:1")
	expect(t, pod, "")
	pod, restarts := upgraded(t, pod, "a:2", "h:1")
	if !slices.Equal(restarts, []string{"app"}) {
		t.Errorf("restarts %v", restarts)
	}
	if pod.Spec.Containers[0].Image != "a:2" || pod.Spec.Containers[1].Image != "h:1" {
		t.Errorf("images %v", pod.Spec.Containers)
	}
	expect(t, pod, "NotObserved")
	expect(t, with(pod, running("app", "a:2", "2")), "NotObserved")
	pod = seen(pod)
	// The kubelet reports the generation before it kills the container.
	expect(t, pod, "ContainerNotRestarted")
	stopped := corev1.ContainerStatus{Name: "app", Image: "a:1", ContainerID: "containerd://app1", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}}
	expect(t, with(pod, stopped), "ErrImagePull")
	if why := ProgressOf(with(pod, stopped), later).Why; !strings.Contains(why, "app") || !strings.Contains(why, "not found") || !strings.Contains(why, "a:2") {
		t.Errorf("why: %s", why)
	}
	unready := running("app", "a:2", "2")
	unready.Ready = false
	expect(t, with(pod, unready), "ContainerNotReady")
	unready = running("app", "a:2", "2")
	unready.Started = new(bool)
	expect(t, with(pod, unready), "ContainerNotReady")
	// The helper does not concern the update.
	broken := running("helper", "h:1", "1")
	broken.Ready = false
	expect(t, with(pod, running("app", "a:2", "2"), broken), "")
}

// TestSameDigest: two tags of one image. The runtime reports either of them.
func TestSameDigest(t *testing.T) {
	for _, generation := range []int64{0, 1} {
		pod := podWith("a:1")
		pod.Generation, pod.Status.ObservedGeneration = generation, generation
		pod, _ = upgraded(t, pod, "a:stable")
		pod = seen(pod)
		expect(t, pod, "ContainerNotRestarted")
		old := pod.Status.ContainerStatuses[0]
		expect(t, with(pod, starts(1, reported(old.Image, old.ImageID, running("app", "a:stable", "2")))), "")
		expect(t, with(pod, reported("sha256:9ae97d36d2", "sha256:9ae97d36d2", running("app", "a:stable", "2"))), "")
	}
}

// TestSpelledImages: the original's fault 6. A name that the runtime spells out
// left pods NotReady for ever.
func TestSpelledImages(t *testing.T) {
	const digest = "sha256:9ae97d36d26566ff84e8893c64a6dc4fe8ca6d1144bf5b87b2b85a32def253c7"
	for _, test := range []struct{ spec, image, imageID string }{
		{"nginx", "docker.io/library/nginx:latest", "docker.io/library/nginx@" + digest},
		{"docker.io/library/nginx:1", "nginx:1", "docker-pullable://nginx@" + digest},
		{"nginx@" + digest, "sha256:1234", "docker.io/library/nginx@" + digest},
		{"nginx:1@" + digest, "docker.io/library/nginx@" + digest, digest},
		{"nginx:2", "sha256:1234", "sha256:1234"},
	} {
		for _, generation := range []int64{0, 1} {
			pod := podWith("a:1")
			pod.Generation, pod.Status.ObservedGeneration = generation, generation
			pod, _ = upgraded(t, pod, test.spec)
			expect(t, with(seen(pod), reported(test.image, test.imageID, running("app", "", "2"))), "")
		}
	}
	// Another spelling is another image for the kubelet, which restarts for it.
	pod, restarts := upgraded(t, podWith("nginx"), "docker.io/library/nginx:latest")
	if len(restarts) != 1 {
		t.Errorf("restarts %v", restarts)
	}
	expect(t, seen(pod), "ContainerNotRestarted")
}

// TestRevertBeforeTheKubeletActed: it never restarts what already runs what the
// spec says, so that nothing may wait for it.
func TestRevertBeforeTheKubeletActed(t *testing.T) {
	pod, _ := upgraded(t, podWith("a:1"), "a:2")
	pod, _ = upgraded(t, pod, "a:1")
	expect(t, pod, "NotObserved")
	expect(t, seen(pod), "")
	// It had acted, and the status did not show it yet.
	expectTime(t, with(seen(pod), starts(1, running("app", "a:2", "2"))))
	expect(t, with(seen(pod), starts(2, running("app", "a:1", "3"))), "")
	// And once more to and fro.
	pod, _ = upgraded(t, pod, "a:2")
	expect(t, seen(pod), "ContainerNotRestarted")
	expect(t, with(seen(pod), starts(1, running("app", "a:2", "2"))), "")
}

// TestRevertAfterTheKubeletActed: the container that runs the new image has to go
// again.
func TestRevertAfterTheKubeletActed(t *testing.T) {
	pod, _ := upgraded(t, podWith("a:1"), "a:2")
	pod = with(seen(pod), starts(1, running("app", "a:2", "2")))
	expect(t, pod, "")
	pod, _ = upgraded(t, pod, "a:1")
	expect(t, seen(pod), "ContainerNotRestarted")
	expect(t, with(seen(pod), starts(2, running("app", "a:1", "3"))), "")
}

// TestRevertOfAnImageThatCannotBePulled: by then the old container is gone.
func TestRevertOfAnImageThatCannotBePulled(t *testing.T) {
	pod, _ := upgraded(t, podWith("a:1"), "a:none")
	waits := corev1.ContainerStatus{Name: "app", Image: "docker.io/library/a:1", ContainerID: "containerd://app1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}
	pod = with(seen(pod), waits)
	expect(t, pod, "ImagePullBackOff")
	pod, _ = upgraded(t, pod, "a:1")
	// The recorded container ran this image, but it is dead: not ready.
	expect(t, seen(pod), "ImagePullBackOff")
	expect(t, with(seen(pod), starts(1, running("app", "a:1", "2"))), "")
}

func TestChainOfUpdates(t *testing.T) {
	pod, _ := upgraded(t, podWith("a:1"), "a:2")
	pod, _ = upgraded(t, pod, "a:3")
	state, _ := ReadState(pod)
	if last := state.LastContainerStatuses["app"]; last.Image != "a:1" || !slices.Equal(last.Via, []string{"a:2"}) || last.ContainerID != "containerd://app1" {
		t.Errorf("recorded %+v", last)
	}
	expect(t, seen(pod), "ContainerNotRestarted")
	// Started for the update before: it goes again at once.
	expectTime(t, with(seen(pod), starts(1, running("app", "a:2", "2"))))
	expect(t, with(seen(pod), starts(1, running("app", "a:3", "2"))), "")
	expect(t, with(seen(pod), starts(2, running("app", "a:3", "3"))), "")
	// a:2 and a:3 are one image, and the runtime says a:2.
	expect(t, with(seen(pod), starts(2, running("app", "a:2", "3"))), "")
}

// TestUpdateOfAnotherContainer keeps waiting for the one of the update before.
func TestUpdateOfAnotherContainer(t *testing.T) {
	pod, _ := upgraded(t, podWith("a:1", "h:1"), "a:2", "h:1")
	pod, restarts := upgraded(t, pod, "a:2", "h:2")
	if !slices.Equal(restarts, []string{"helper"}) {
		t.Errorf("restarts %v", restarts)
	}
	expect(t, with(seen(pod), running("helper", "h:2", "2")), "ContainerNotRestarted")
	expect(t, with(seen(pod), running("helper", "h:2", "2"), running("app", "a:2", "2")), "")
	// Had it come to its end, there would be nothing to wait for.
	pod, _ = upgraded(t, podWith("a:1", "h:1"), "a:2", "h:1")
	pod, _ = upgraded(t, with(seen(pod), running("app", "a:2", "2")), "a:2", "h:2")
	if state, _ := ReadState(pod); len(state.LastContainerStatuses) != 1 {
		t.Errorf("waits for %v", state.LastContainerStatuses)
	}
}

// TestNothingHasStarted: at the time of the patch there is no container yet.
func TestNothingHasStarted(t *testing.T) {
	pod := podWith("a:none")
	pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", Image: "a:none", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}
	pod, restarts := upgraded(t, pod, "a:1")
	if len(restarts) != 1 {
		t.Errorf("restarts %v", restarts)
	}
	expect(t, seen(pod), "ImagePullBackOff")
	expect(t, with(seen(pod), running("app", "a:1", "1")), "")
	// The pull succeeded after all, just before the kubelet saw the patch.
	expectTime(t, with(seen(pod), running("app", "a:none", "1")))
	pod.Status = corev1.PodStatus{} // not even scheduled
	expect(t, pod, "ContainerNotStarted")
}
