package inplace

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func recorded(t *testing.T, pod *corev1.Pod) LastContainerStatus {
	t.Helper()
	state, ok := ReadState(pod)
	if !ok {
		t.Fatal("no record")
	}
	return state.LastContainerStatuses["app"]
}

// TestCrashBeforeAnUpdateThatIsReverted: the container of a:1 crashes, and starts
// again, after the update to a:2 was decided on. The kubelet reports the update,
// cannot act on it (a volume that does not mount), and then it is reverted: that
// container runs what it should, and never restarts. Once its record said that it
// had been started from a:2, and the gate stayed closed for ever.
func TestCrashBeforeAnUpdateThatIsReverted(t *testing.T) {
	for _, age := range []time.Duration{0, time.Hour} { // of the update
		pod, _ := upgraded(t, podWith("a:1"), "a:2")
		again := starts(1, running("app", "a:1", "2"))
		pod = aged(t, with(seen(pod), again), age)
		back, _ := upgraded(t, pod, "a:1")
		if last := recorded(t, back); last.Image != "" || !slices.Equal(last.Via, []string{"a:2", "a:1"}) || last.ContainerID != again.ContainerID {
			t.Errorf("recorded %+v", last)
		}
		expect(t, back, "NotObserved")
		expectTime(t, seen(back))
		// It was a:2 after all, under the name of another tag.
		expect(t, with(seen(back), starts(2, running("app", "a:1", "3"))), "")
		expectTime(t, with(seen(back), starts(2, running("app", "a:2", "3"))))
		// To and fro: still nobody knows. To a third one it has to restart.
		to, _ := upgraded(t, aged(t, seen(back), time.Hour), "a:2")
		expectTime(t, seen(to))
		expect(t, with(seen(to), starts(2, running("app", "a:2", "3"))), "")
		to, _ = upgraded(t, aged(t, seen(back), time.Hour), "a:3")
		expect(t, seen(to), "ContainerNotRestarted")
	}
}

// aged is the pod when its update is so old.
func aged(t *testing.T, pod *corev1.Pod, age time.Duration) *corev1.Pod {
	t.Helper()
	state, ok := ReadState(pod)
	if !ok {
		t.Fatal("no record")
	}
	state.UpdateTimestamp = metav1.NewTime(patchTime.Add(-age))
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	pod = pod.DeepCopy()
	pod.Annotations[tappv1.AnnotationInPlaceState] = string(text)
	return pod
}

// TestRevertIsKnown: what the container was started from is known by its image and
// name, or by its image or name and the time that the kubelet had. Then a revert
// waits for the restart, however long that takes.
func TestRevertIsKnown(t *testing.T) {
	two := starts(1, running("app", "a:2", "2"))
	one := running("app", "a:1", "1")
	for about, test := range map[string]struct {
		has          corev1.ContainerStatus
		young, later bool // it is known, so long after the update
	}{
		"another image, and its name":               {two, true, true},
		"another image, by its id":                  {reported("sha256:2", "sha256:2", two), false, true},
		"another image, by a name that nobody gave": {reported("mirror/a:2", two.ImageID, two), false, true},
		"another image, by the old name":            {reported(one.Image, two.ImageID, two), false, false},
		"the same image, by the new name":           {reported(two.Image, one.ImageID, two), false, true},
		"the same image, by the old name":           {reported(one.Image, one.ImageID, two), false, false},
		"the same image, by its id":                 {reported("sha256:1", one.ImageID, two), false, false},
	} {
		for age, known := range map[time.Duration]bool{0: test.young, 90 * time.Second: test.young, 91 * time.Second: test.later} {
			pod, _ := upgraded(t, podWith("a:1"), "a:2")
			pod = aged(t, with(seen(pod), test.has), age)
			expect(t, pod, "")
			back, _ := upgraded(t, pod, "a:1")
			if last := recorded(t, back); known != (last.Image == "a:2") || known != (len(last.Via) == 0) {
				t.Errorf("%s, %s: recorded %+v", about, age, last)
				continue
			}
			if known {
				expect(t, seen(back), "ContainerNotRestarted")
			} else {
				expectTime(t, seen(back))
			}
			expect(t, with(seen(back), starts(2, running("app", "a:1", "3"))), "")
		}
	}
}

// TestTwoTagsInAChain: the runtime calls a:2 and a:3 by the name of a:2, and the
// kubelet went from a:1 to a:3 at once.
func TestTwoTagsInAChain(t *testing.T) {
	pod, _ := upgraded(t, podWith("a:1"), "a:2")
	pod, _ = upgraded(t, pod, "a:3")
	pod = with(seen(pod), starts(1, running("app", "a:2", "2")))
	expectTime(t, pod)
	// Whether it went so is not known either when it is reverted to a:2.
	back, _ := upgraded(t, pod, "a:2")
	expectTime(t, seen(back))
	// A chain that is over: the name and the time tell.
	pod = with(pod, starts(1, running("app", "a:3", "2")))
	back, _ = upgraded(t, pod, "a:2")
	expectTime(t, seen(back))
	back, _ = upgraded(t, aged(t, pod, time.Hour), "a:2")
	expect(t, seen(back), "ContainerNotRestarted")
}

// TestTimeToAct: from the patch or from the start of the container, whichever came
// later, and with the grace period of the pod.
func TestTimeToAct(t *testing.T) {
	pod, _ := upgraded(t, podWith("a:1"), "a:2")
	pod, _ = upgraded(t, with(seen(pod), starts(1, running("app", "a:1", "2"))), "a:1")
	pod = seen(pod)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(600))
	if got := ProgressOf(pod, patchTime.Add(time.Second)); got.Left != 660*time.Second {
		t.Errorf("%+v", got)
	}
	pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(patchTime.Add(time.Minute))
	if got := ProgressOf(pod, patchTime.Add(time.Second)); got.Left != 720*time.Second {
		t.Errorf("%+v", got)
	}
	// There is nothing to wait for where it has no image that may be the wanted one.
	other, _ := upgraded(t, pod, "a:3")
	if got := ProgressOf(seen(other), patchTime); got.Left != 0 || got.Reason != "ContainerNotRestarted" {
		t.Errorf("%+v", got)
	}
}

// TestLongChain: the record is bounded. What it does not name any more may be what
// runs.
func TestLongChain(t *testing.T) {
	pod, _ := upgraded(t, podWith("a:0"), "a:1")
	pod = with(seen(pod), starts(1, running("app", "a:0", "2")))
	for _, tag := range []string{"2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		pod, _ = upgraded(t, pod, "a:"+tag)
	}
	if last := recorded(t, pod); len(last.Via) != 8 || slices.Contains(last.Via, "a:0") {
		t.Errorf("recorded %+v", last)
	}
	back, _ := upgraded(t, pod, "a:0")
	expectTime(t, seen(back))
}
