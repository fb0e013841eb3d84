package kwok

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func gated(p *corev1.Pod) {
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
}

func always() *corev1.ContainerRestartPolicy {
	p := corev1.ContainerRestartPolicyAlways
	return &p
}

// expect asserts what every transition must leave behind.
func (k *kubelet) expect(writes int, phase corev1.PodPhase, ready corev1.ConditionStatus, reason string) {
	k.t.Helper()
	if k.writes != writes {
		k.t.Errorf("%d status writes, want %d", k.writes, writes)
	}
	k.writes = 0
	if k.pod.Status.Phase != phase {
		k.t.Errorf("phase %s, want %s", k.pod.Status.Phase, phase)
	}
	c := k.condition(corev1.PodReady)
	explained := reason == "ContainersNotReady" || reason == "ReadinessGatesNotReady"
	if c.Status != ready || c.Reason != reason || (c.Message != "") != explained {
		k.t.Errorf("Ready %+v, want %s %s", c, ready, reason)
	}
	if k.pod.DeletionTimestamp == nil && (k.pod.Status.ObservedGeneration != k.pod.Generation || c.ObservedGeneration > k.pod.Generation) {
		k.t.Errorf("observed generation %d (Ready: %d), want %d", k.pod.Status.ObservedGeneration, c.ObservedGeneration, k.pod.Generation)
	}
}

func TestInPlaceUpdateWithGate(t *testing.T) {
	k := newKubelet(t)
	k.run(gated, "nginx:1.7.9", "gcr.io/x/sidecar:v1")
	k.expect(1, corev1.PodRunning, corev1.ConditionFalse, "ReadinessGatesNotReady")
	if k.condition(gate).Type != "" {
		t.Error("a kubelet never writes a gate's condition")
	}
	if k.condition(corev1.ContainersReady).Status != corev1.ConditionTrue || k.pod.Status.PodIP != "10.200.0.7" {
		t.Errorf("started wrongly: %s", dump(k.pod.Status))
	}
	k.setGate(corev1.ConditionTrue)
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	k.setGate(corev1.ConditionFalse)
	k.expect(1, corev1.PodRunning, corev1.ConditionFalse, "ReadinessGatesNotReady")

	first, other := k.container("c0"), k.container("c1")
	if first.Image != "docker.io/library/nginx:1.7.9" || other.Image != "gcr.io/x/sidecar:v1" {
		t.Errorf("images %s, %s", first.Image, other.Image)
	}
	k.now = k.now.Add(time.Minute)
	k.image("c0", "nginx:1.8.1")
	k.expect(1, corev1.PodRunning, corev1.ConditionFalse, "ReadinessGatesNotReady")
	next := k.container("c0")
	if next.ContainerID == first.ContainerID || next.ImageID == first.ImageID || next.RestartCount != 1 || !next.Ready ||
		next.Image != "docker.io/library/nginx:1.8.1" || !next.State.Running.StartedAt.After(first.State.Running.StartedAt.Time) ||
		next.LastTerminationState.Terminated.ContainerID != first.ContainerID {
		t.Errorf("not restarted: %s", dump(next))
	}
	if dump(k.container("c1")) != dump(other) {
		t.Errorf("the other container changed: %s", dump(k.container("c1")))
	}
	k.setGate(corev1.ConditionTrue)
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	if c := k.condition(gate); c.Reason != "Mine" {
		t.Errorf("the gate's condition changed: %+v", c)
	}
}

// TestWithoutGenerations: a pod of Kubernetes before 1.33 starts, its gate flips, it changes in place, and is written once each.
func TestWithoutGenerations(t *testing.T) {
	k := newKubelet(t)
	k.old = true
	k.run(func(p *corev1.Pod) {
		gated(p)
		p.Spec.InitContainers = []corev1.Container{{Name: "proxy", Image: "proxy:1", RestartPolicy: always()}}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceCPU: resource.MustParse("1")}
	}, "nginx:1", "b:1")
	k.expect(1, corev1.PodRunning, corev1.ConditionFalse, "ReadinessGatesNotReady")
	k.setGate(corev1.ConditionTrue)
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	b := k.container("c1")
	k.image("c0", "nginx:2")
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	if k.container("c0").RestartCount != 1 || dump(k.container("c1")) != dump(b) {
		t.Error(dump(k.pod.Status.ContainerStatuses))
	}
	k.image("proxy", "proxy:2")
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	k.edit(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })
	k.expect(0, corev1.PodRunning, corev1.ConditionTrue, "")
	k.image("c0", "nginx:bad")
	k.expect(1, corev1.PodRunning, corev1.ConditionFalse, "ContainersNotReady")
	k.delete(30, time.Minute)
	if !k.gone {
		t.Error("it is still there")
	}
}

func TestSameDigestRestartsTheContainer(t *testing.T) {
	k := newKubelet(t)
	k.run(nil, "demo:v1")
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	first := k.container("c0")
	k.image("c0", "demo:v1-same")
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	next := k.container("c0")
	if next.ImageID != first.ImageID || next.Image != first.Image || next.ContainerID == first.ContainerID || next.RestartCount != 1 {
		t.Errorf("from %s to %s", dump(first), dump(next))
	}
}

func TestSidecarsAndInitContainers(t *testing.T) {
	k := newKubelet(t)
	k.run(func(p *corev1.Pod) {
		gated(p)
		p.Spec.InitContainers = []corev1.Container{
			{Name: "init", Image: "busybox"}, {Name: "proxy", Image: "proxy:1", RestartPolicy: always()},
		}
	}, "nginx:1.7.9")
	k.setGate(corev1.ConditionTrue)
	k.expect(2, corev1.PodRunning, corev1.ConditionTrue, "")
	init, proxy, main := k.container("init"), k.container("proxy"), k.container("c0")
	if init.State.Terminated == nil || init.State.Terminated.Reason != "Completed" || !init.Ready || proxy.State.Running == nil {
		t.Errorf("init %s proxy %s", dump(init), dump(proxy))
	}
	k.image("init", "busybox:2")
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	if dump(init) != dump(k.container("init")) || dump(main) != dump(k.container("c0")) {
		t.Error("an init image takes effect at the next start only")
	}
	k.image("proxy", "proxy:unready")
	k.expect(1, corev1.PodRunning, corev1.ConditionFalse, "ContainersNotReady")
	k.image("proxy", "proxy:3")
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	if p := k.container("proxy"); p.RestartCount != 2 || dump(main) != dump(k.container("c0")) {
		t.Errorf("proxy %s", dump(p))
	}
}

func TestInjectedContainersAreMatchedByName(t *testing.T) {
	k := newKubelet(t)
	k.run(nil, "a:1", "b:1")
	// A mutating webhook may have put a container first; statuses may come in another order.
	k.edit(func(p *corev1.Pod) {
		s := p.Status.ContainerStatuses
		s[0], s[1] = s[1], s[0]
	})
	b := k.container("c1")
	k.image("c0", "a:2")
	if k.container("c0").RestartCount != 1 || dump(b) != dump(k.container("c1")) {
		t.Error(dump(k.pod.Status.ContainerStatuses))
	}
}

func TestResizeIsObserved(t *testing.T) {
	k := newKubelet(t)
	k.run(nil, "a:1")
	before := k.container("c0")
	k.writes = 0
	k.edit(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	})
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	after := k.container("c0")
	if after.ContainerID != before.ContainerID || after.Resources.Requests.Cpu().String() != "2" || after.AllocatedResources.Cpu().String() != "2" {
		t.Error(dump(after))
	}
	k.edit(func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}}
	})
	k.expect(1, corev1.PodRunning, corev1.ConditionTrue, "")
	k.edit(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })
	k.expect(0, corev1.PodRunning, corev1.ConditionTrue, "")
}

// A condition that someone else wrote is put right, as a kubelet would.
func TestReadyBelongsToTheKubelet(t *testing.T) {
	k := newKubelet(t)
	k.run(gated, "a:1")
	k.writes = 0
	k.edit(func(p *corev1.Pod) {
		for i := range p.Status.Conditions {
			if p.Status.Conditions[i].Type == corev1.PodReady {
				p.Status.Conditions[i].Status = corev1.ConditionTrue
			}
		}
	})
	k.expect(1, corev1.PodRunning, corev1.ConditionFalse, "ReadinessGatesNotReady")
}

func TestTransitionTimes(t *testing.T) {
	k := newKubelet(t)
	k.run(gated, "a:1")
	start := k.condition(corev1.ContainersReady).LastTransitionTime
	k.now = k.now.Add(time.Hour)
	k.setGate(corev1.ConditionTrue)
	if got := k.condition(corev1.ContainersReady).LastTransitionTime; !got.Equal(&start) {
		t.Error("ContainersReady did not change")
	}
	if got := k.condition(corev1.PodReady).LastTransitionTime.Time; !got.Equal(k.now.Truncate(time.Second)) {
		t.Errorf("Ready changed at %s, not now", got)
	}
}
