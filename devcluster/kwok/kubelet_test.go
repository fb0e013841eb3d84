package kwok

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// kubelet plays our pod stages on one pod with KWOK's own code and a clock that stands still between stages: an API server
// and a KWOK without either.
type kubelet struct {
	t      *testing.T
	stages lifecycle.Lifecycle
	render gotpl.Renderer
	now    time.Time

	// old: an API server of before 1.33, where pods have no generation.
	old    bool
	pod    *corev1.Pod
	writes int  // status patches
	gone   bool // the pod was deleted, and had no finalizers
}

const gate corev1.PodConditionType = "tkestack.io/InPlaceUpdate"

func newKubelet(t testing.TB) *kubelet {
	t.Helper()
	k := &kubelet{stages: stages(t, "Pod"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	k.t, _ = t.(*testing.T)
	k.render = gotpl.NewRenderer(gotpl.FuncMap{
		"now":         func() time.Time { return k.now },
		"NodeIPsWith": func(string) []string { return []string{"10.0.0.1"} },
		"PodIPsWith":  func(string, bool, string, string, string) []string { return []string{"10.200.0.7"} },
	})
	return k
}

// run starts a pod with these containers (name to image) and settles it.
func (k *kubelet) run(change func(*corev1.Pod), images ...string) {
	k.t.Helper()
	k.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", Namespace: "default", UID: "u-1", Generation: 1, ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(k.now),
		},
		Spec: corev1.PodSpec{NodeName: "kwok-0", RestartPolicy: corev1.RestartPolicyAlways},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(k.now)},
		}},
	}
	for i, image := range images {
		k.pod.Spec.Containers = append(k.pod.Spec.Containers, corev1.Container{Name: "c" + strconv.Itoa(i), Image: image})
	}
	if change != nil {
		change(k.pod)
	}
	if k.old {
		k.pod.Generation = 0
	}
	k.settle(0)
}

// edit changes the pod as a client would, and settles it. A spec change bumps the generation.
func (k *kubelet) edit(change func(*corev1.Pod)) {
	k.t.Helper()
	before, _ := json.Marshal(k.pod.Spec)
	change(k.pod)
	if after, _ := json.Marshal(k.pod.Spec); string(before) != string(after) && !k.old {
		k.pod.Generation++
	}
	k.bump()
	k.settle(0)
}

func (k *kubelet) setGate(status corev1.ConditionStatus) {
	k.t.Helper()
	k.edit(func(p *corev1.Pod) {
		for i := range p.Status.Conditions {
			if p.Status.Conditions[i].Type == gate {
				p.Status.Conditions[i].Status = status
				return
			}
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: gate, Status: status, Reason: "Mine"})
	})
}

func (k *kubelet) image(name, image string) {
	k.t.Helper()
	k.edit(func(p *corev1.Pod) {
		for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range list {
				if list[i].Name == name {
					list[i].Image = image
				}
			}
		}
	})
}

// delete begins a graceful deletion and lets the kubelet work for as long as wait.
func (k *kubelet) delete(grace int64, wait time.Duration) {
	k.t.Helper()
	at := metav1.NewTime(k.now.Add(time.Duration(grace) * time.Second))
	k.pod.DeletionTimestamp, k.pod.DeletionGracePeriodSeconds = &at, &grace
	if !k.old {
		k.pod.Generation++
	}
	k.bump()
	k.settle(wait)
}

func (k *kubelet) bump() {
	n, _ := strconv.Atoi(k.pod.ResourceVersion)
	k.pod.ResourceVersion = strconv.Itoa(n + 1)
}

// settle plays stages until none matches, or the next one is due only after wait (and more than a second from now).
func (k *kubelet) settle(wait time.Duration) {
	k.t.Helper()
	deadline := k.now.Add(max(wait, time.Second))
	for range 6 {
		if k.gone {
			return
		}
		event := &lifecycle.Event{Labels: k.pod.Labels, Annotations: k.pod.Annotations, Data: k.pod}
		stage, err := k.stages.Match(context.Background(), event)
		if err != nil {
			k.t.Fatal(err)
		}
		if stage == nil {
			return
		}
		delay, _, err := stage.Delay(context.Background(), event, k.now)
		if err != nil {
			k.t.Fatal(err)
		}
		if k.now.Add(delay).After(deadline) {
			return
		}
		k.now = k.now.Add(max(delay, 0))
		k.play(stage)
	}
	k.t.Fatalf("still not settled after 6 stages: %s", dump(k.pod.Status))
}

func (k *kubelet) play(stage *lifecycle.Stage) {
	k.t.Helper()
	_, err := stage.DoSteps(0, k.pod.Finalizers, k.pod, k.render, nil,
		func() error {
			zero := int64(0)
			k.pod.DeletionGracePeriodSeconds = &zero
			k.bump()
			k.gone = len(k.pod.Finalizers) == 0
			return nil
		},
		func(p *lifecycle.Patch) error { k.patch(p); return nil },
		nil)
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *kubelet) patch(p *lifecycle.Patch) {
	k.t.Helper()
	var precondition struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(p.Data, &precondition); err != nil {
		k.t.Fatal(err)
	}
	if precondition.Metadata.ResourceVersion != k.pod.ResourceVersion {
		k.t.Fatalf("patch without its resourceVersion: %s", p.Data)
	}
	object := patched[corev1.Pod]{t: k.t, object: k.pod}
	_ = object.patch(p)
	k.pod = object.object
	if k.old { // fields that it does not know
		k.pod.Status.ObservedGeneration = 0
		for i := range k.pod.Status.Conditions {
			k.pod.Status.Conditions[i].ObservedGeneration = 0
		}
	}
	k.writes++
	k.bump()
}

func (k *kubelet) condition(kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range k.pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func (k *kubelet) container(name string) corev1.ContainerStatus {
	k.t.Helper()
	for _, list := range [][]corev1.ContainerStatus{k.pod.Status.InitContainerStatuses, k.pod.Status.ContainerStatuses} {
		for _, s := range list {
			if s.Name == name {
				return s
			}
		}
	}
	k.t.Fatalf("no status of container %s", name)
	return corev1.ContainerStatus{}
}

// patched applies status patches to an object as the API server does.
type patched[T any] struct {
	t      *testing.T
	object *T
}

func (o *patched[T]) patch(p *lifecycle.Patch) error {
	o.t.Helper()
	if p.Type != types.StrategicMergePatchType || p.Subresource != "status" {
		o.t.Fatalf("patch of type %s on %q", p.Type, p.Subresource)
	}
	original, err := json.Marshal(o.object)
	if err != nil {
		o.t.Fatal(err)
	}
	var into T
	merged, err := strategicpatch.StrategicMergePatch(original, p.Data, into)
	if err != nil {
		o.t.Fatal(err)
	}
	if err := json.Unmarshal(merged, &into); err != nil {
		o.t.Fatalf("%v: %s", err, merged)
	}
	o.object = &into
	return nil
}

func dump(v any) string {
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}
