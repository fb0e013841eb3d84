package kwok

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func annotate(p *corev1.Pod, key, value string) {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[key] = value
}

func waiting(s corev1.ContainerStatus) string {
	if s.State.Waiting == nil {
		return ""
	}
	return s.State.Waiting.Reason
}

func TestImageTags(t *testing.T) {
	policy := func(p corev1.RestartPolicy) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = p }
	}
	for name, c := range map[string]struct {
		change  func(*corev1.Pod)
		image   string
		phase   corev1.PodPhase
		reason  string
		waiting string
	}{
		"crash":            {policy("Always"), "demo:crash", corev1.PodRunning, "ContainersNotReady", "CrashLoopBackOff"},
		"crash, OnFailure": {policy("OnFailure"), "demo:crash", corev1.PodRunning, "ContainersNotReady", "CrashLoopBackOff"},
		"crash, Never":     {policy("Never"), "demo:crash", corev1.PodFailed, "PodFailed", ""},
		"done":             {policy("Always"), "demo:done", corev1.PodRunning, "ContainersNotReady", "CrashLoopBackOff"},
		"done, OnFailure":  {policy("OnFailure"), "demo:done", corev1.PodSucceeded, "PodCompleted", ""},
		"unready":          {nil, "reg.io:5000/demo:unready", corev1.PodRunning, "ContainersNotReady", ""},
		"bad":              {nil, "demo:bad", corev1.PodPending, "ContainersNotReady", "ImagePullBackOff"},
		"missing":          {nil, "x/demo:missing", corev1.PodPending, "ContainersNotReady", "ImagePullBackOff"},
		"host named crash": {nil, "crash:5000/demo:v1", corev1.PodRunning, "", ""},
		"no tag":           {nil, "crash", corev1.PodRunning, "", ""},
		"digest":           {nil, "demo:crashed@sha256:1234", corev1.PodRunning, "", ""},
		"bad init":         {func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "x:bad"}} }, "demo:v1", corev1.PodPending, "ContainersNotReady", "PodInitializing"},
		"crashing init":    {func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "x:crash"}} }, "demo:v1", corev1.PodPending, "ContainersNotReady", "PodInitializing"},
		"failed init, Never": {func(p *corev1.Pod) {
			p.Spec.RestartPolicy = "Never"
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "x:crash"}}
		}, "demo:v1", corev1.PodFailed, "PodFailed", "PodInitializing"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKubelet(t)
			k.run(c.change, c.image)
			ready := corev1.ConditionFalse
			if c.reason == "" {
				ready = corev1.ConditionTrue
			}
			k.expect(1, c.phase, ready, c.reason)
			if got := waiting(k.container("c0")); got != c.waiting {
				t.Errorf("waiting for %q, want %q", got, c.waiting)
			}
		})
	}
}

func TestBadUpdatesCanBeFixed(t *testing.T) {
	for _, bad := range []string{"crash", "unready", "bad", "done"} {
		t.Run(bad, func(t *testing.T) {
			k := newKubelet(t)
			k.run(gated, "demo:v1")
			k.setGate(corev1.ConditionTrue)
			k.expect(2, corev1.PodRunning, corev1.ConditionTrue, "")
			good := k.container("c0")
			k.image("c0", "demo:"+bad)
			k.expect(1, corev1.PodRunning, corev1.ConditionFalse, "ContainersNotReady")
			k.setGate(corev1.ConditionFalse)
			k.expect(0, corev1.PodRunning, corev1.ConditionFalse, "ContainersNotReady")
			broken := k.container("c0")
			if broken.State.Running == nil && broken.LastTerminationState.Terminated == nil {
				t.Errorf("the old container left no trace: %s", dump(broken))
			}
			k.image("c0", "demo:v1") // back to what ran before
			k.setGate(corev1.ConditionTrue)
			k.expect(2, corev1.PodRunning, corev1.ConditionTrue, "")
			if got := k.container("c0"); got.ContainerID == good.ContainerID || got.ContainerID == broken.ContainerID || got.RestartCount <= good.RestartCount {
				t.Errorf("not a new container: %s", dump(got))
			}
		})
	}
}

func TestFixedInitContainerLetsThePodStart(t *testing.T) {
	k := newKubelet(t)
	k.run(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "x:bad"}} }, "demo:v1")
	k.image("i", "x:v2")
	k.expect(2, corev1.PodRunning, corev1.ConditionTrue, "")
}

func TestSlowContainer(t *testing.T) {
	k := newKubelet(t)
	k.run(nil, "demo:slow")
	k.expect(1, corev1.PodRunning, corev1.ConditionFalse, "ContainersNotReady")
	began := k.container("c0")
	k.settle(10 * time.Second)
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	if got := k.now.Sub(began.State.Running.StartedAt.Time); got < 5*time.Second || got > 6*time.Second {
		t.Errorf("ready after %s", got)
	}
	if k.container("c0").ContainerID != began.ContainerID {
		t.Error("restarted")
	}
}

func TestFinishAndEvict(t *testing.T) {
	k := newKubelet(t)
	k.run(nil, "demo:v1")
	k.writes = 0
	k.edit(func(p *corev1.Pod) { annotate(p, Finish, "Failed") })
	k.expect(1, corev1.PodFailed, corev1.ConditionFalse, "PodFailed")
	if s := k.container("c0"); s.State.Terminated == nil || s.State.Terminated.ExitCode != 1 || s.RestartCount != 0 {
		t.Error(dump(s))
	}

	k = newKubelet(t)
	k.run(func(p *corev1.Pod) { annotate(p, Finish, "Succeeded") }, "demo:v1")
	k.expect(1, corev1.PodSucceeded, corev1.ConditionFalse, "PodCompleted")

	k = newKubelet(t)
	k.run(func(p *corev1.Pod) { annotate(p, Finish, "nonsense") }, "demo:v1")
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	k.edit(func(p *corev1.Pod) { annotate(p, Evict, "true") })
	k.expect(1, corev1.PodFailed, corev1.ConditionFalse, "PodFailed")
	if k.pod.Status.Reason != "Evicted" || k.pod.Status.ContainerStatuses != nil || k.condition(corev1.DisruptionTarget).Status != corev1.ConditionTrue {
		t.Error(dump(k.pod.Status))
	}
	k.delete(30, 0)
	if !k.gone {
		t.Error("an ended pod is deleted at once")
	}
}

func TestDelays(t *testing.T) {
	k := newKubelet(t)
	k.run(func(p *corev1.Pod) { annotate(p, StartDelay, "3s") }, "demo:v1")
	if k.pod.Status.Phase != corev1.PodPending || k.writes != 0 {
		t.Error("started too early")
	}
	k.settle(3 * time.Second)
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")

	k = newKubelet(t)
	k.run(func(p *corev1.Pod) { annotate(p, Freeze, "true") }, "demo:v1")
	k.delete(1, time.Hour)
	if k.gone || k.writes != 0 {
		t.Error("a frozen pod is left alone")
	}
}

func TestDeletion(t *testing.T) {
	start := func() *kubelet {
		k := newKubelet(t)
		k.run(nil, "demo:v1")
		k.writes = 0
		return k
	}
	k := start()
	k.delete(30, 250*time.Millisecond)
	k.settle(400 * time.Millisecond)
	if !k.gone || k.writes != 0 {
		t.Errorf("gone: %v, after %d writes", k.gone, k.writes)
	}

	k = start()
	annotate(k.pod, HangOnDelete, "true")
	k.delete(30, 29*time.Second)
	if k.gone {
		t.Error("gone before its grace period ended")
	}
	if k.settle(31 * time.Second); !k.gone {
		t.Error("there after its grace period")
	}

	k = start()
	k.pod.Finalizers = []string{"example.com/hold"}
	k.delete(30, time.Minute)
	if k.gone || k.pod.Status.Phase != corev1.PodSucceeded || *k.pod.DeletionGracePeriodSeconds != 0 || k.writes != 1 {
		t.Errorf("%d writes: %s", k.writes, dump(k.pod))
	}
	if s := k.container("c0"); s.State.Terminated == nil || !strings.HasPrefix(s.ContainerID, "containerd://") {
		t.Error(dump(s))
	}
}
