//go:build cluster

package shell

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// witness watches every step of the pods of a namespace for what must never
// happen: two pods of one instance, more instances out of service than the
// budget allows, an image that changes before the pod is drained, an instance
// that is recreated for no reason.
type witness struct {
	mu     sync.Mutex
	pods   map[string]*corev1.Pod // that have not ended
	uids   map[string][]types.UID // that a name ever had
	faults []string
	budget int             // how many may be out of service; -1: not watched
	spared map[string]bool // names whose outage is not the budget's
}

func (r *rig) watchPods() *witness {
	r.Helper()
	w := &witness{pods: map[string]*corev1.Pod{}, uids: map[string][]types.UID{}, budget: -1, spared: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	events, err := r.kube.CoreV1().Pods(r.ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, f := range w.faults {
			r.Error(f)
		}
	})
	go func() {
		for e := range events.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				w.see(e.Type, pod)
			}
		}
	}()
	return w
}

func (w *witness) see(kind watch.EventType, pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.pods[pod.Name]
	if kind == watch.Deleted {
		delete(w.pods, pod.Name)
		return
	}
	if before == nil || before.UID != pod.UID {
		w.uids[pod.Name] = append(w.uids[pod.Name], pod.UID)
	}
	w.pods[pod.Name] = pod
	ids := map[string]string{}
	out := 0
	for name, p := range w.pods {
		if owner := metav1.GetControllerOf(p); owner != nil {
			id := owner.Name + "/" + p.Labels[tappv1.LabelInstanceID]
			if other := ids[id]; other != "" {
				w.fault(pod, "instance %s has the pods %s and %s", id, other, name)
			}
			ids[id] = name
		}
		if !w.spared[name] && !inService(p) {
			out++
		}
	}
	if w.budget >= 0 && out > w.budget {
		w.fault(pod, "%d instances are out of service; the budget allows %d", out, w.budget)
	}
	if before != nil && before.UID == pod.UID && before.Spec.Containers[0].Image != pod.Spec.Containers[0].Image && inService(before) {
		w.fault(pod, "the image changed before the pod was drained")
	}
}

func (w *witness) fault(pod *corev1.Pod, format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("pod %s at %s: %s", pod.Name, pod.ResourceVersion, fmt.Sprintf(format, args...)))
}

// expect sets what the next steps may do.
func (w *witness) expect(budget int, spared ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget = budget
	clear(w.spared)
	for _, s := range spared {
		w.spared[s] = true
	}
}

// lives is how many pods a name has had.
func (w *witness) lives(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.uids[name])
}

func inService(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}
