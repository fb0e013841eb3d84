package contender

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// patience with a phase.
const patience = 10 * time.Minute

// pods follows those of a namespace, by one watch for all contenders alike.
type pods struct {
	mu    sync.Mutex
	now   map[string]*corev1.Pod
	goal  *goal // there is one at a time
	waits map[string][]waiter
}

// goal is that there are n pods, and ok holds for each.
type goal struct {
	n    int
	ok   func(*corev1.Pod) bool
	good map[string]bool
	done chan struct{}
	over bool
}

// waiter waits for one pod; nil stands for one that does not exist.
type waiter struct {
	ok   func(*corev1.Pod) bool
	done chan struct{}
}

// follow watches until ctx ends. It returns when it knows all that there is.
func follow(ctx context.Context, core kubernetes.Interface, namespace string) (*pods, error) {
	p := &pods{now: map[string]*corev1.Pod{}, waits: map[string][]waiter{}}
	lw := cache.NewListWatchFromClient(core.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: lw, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { p.changed(obj.(*corev1.Pod), false) },
		UpdateFunc: func(_, obj any) { p.changed(obj.(*corev1.Pod), false) },
		DeleteFunc: func(obj any) {
			if d, is := obj.(cache.DeletedFinalStateUnknown); is {
				obj = d.Obj
			}
			p.changed(obj.(*corev1.Pod), true)
		},
	}})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watching pods: %w", ctx.Err())
	}
	return p, nil
}

func (p *pods) changed(pod *corev1.Pod, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	current := pod
	if gone {
		current = nil
		delete(p.now, pod.Name)
	} else {
		p.now[pod.Name] = pod
	}
	if p.goal != nil {
		p.goal.note(pod.Name, current, len(p.now))
	}
	var left []waiter
	for _, w := range p.waits[pod.Name] {
		if w.ok(current) {
			close(w.done)
		} else {
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		delete(p.waits, pod.Name)
	} else {
		p.waits[pod.Name] = left
	}
}

func (g *goal) note(name string, pod *corev1.Pod, total int) {
	if pod != nil && g.ok(pod) {
		g.good[name] = true
	} else {
		delete(g.good, name)
	}
	if !g.over && total == g.n && len(g.good) == g.n {
		g.over = true
		close(g.done)
	}
}

// all returns when there are exactly n pods and ok holds for each.
func (p *pods) all(ctx context.Context, n int, ok func(*corev1.Pod) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	g := &goal{n: n, ok: ok, good: map[string]bool{}, done: make(chan struct{})}
	p.mu.Lock()
	for name, pod := range p.now {
		if ok(pod) {
			g.good[name] = true
		}
	}
	if len(p.now) == n && len(g.good) == n {
		p.mu.Unlock()
		return nil
	}
	p.goal = g
	p.mu.Unlock()
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		return fmt.Errorf("%d of %d pods got there: %w", len(g.good), n, ctx.Err())
	}
}

// one returns when ok holds for the pod of that name.
func (p *pods) one(ctx context.Context, name string, ok func(*corev1.Pod) bool) error {
	w := waiter{ok: ok, done: make(chan struct{})}
	p.mu.Lock()
	if ok(p.now[name]) {
		p.mu.Unlock()
		return nil
	}
	p.waits[name] = append(p.waits[name], w)
	p.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for pod %s: %w", name, ctx.Err())
	}
}

// names of the pods that there are.
func (p *pods) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := make([]string, 0, len(p.now))
	for name := range p.now {
		names = append(names, name)
	}
	return names
}

// runs says whether a pod is ready and is of that version.
func runs(v version) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		if pod == nil || pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) == 0 {
			return false
		}
		c := pod.Spec.Containers[0]
		if pod.Status.ContainerStatuses[0].Image != v.image() || len(c.Env) != 1 || c.Env[0].Value != v.revision() {
			return false
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	}
}

func isGone(pod *corev1.Pod) bool { return pod == nil }
