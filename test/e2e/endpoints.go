//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"tkestack.io/tapp/test/gen"
)

// routing is what a Service routed to, and how its pods changed, each with its
// place in the order of all writes.
type routing struct {
	ns, service string

	mu     sync.Mutex
	slices []routes
	since  int // the first of slices that neverFewer judges
	steps  []step
	latest map[string]map[types.UID]bool // by slice
}

// routes is the set of pods that were ready in the Service from a version on.
type routes struct {
	from  uint64
	ready map[types.UID]bool
}

// expose makes a Service for the pods of an app, and watches what it routes to.
func expose(t *testing.T, ns, app string) *routing {
	t.Helper()
	_, err := suite.Kube.CoreV1().Services(ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(gen.DemoPort)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create Service %s: %v", app, err)
	}
	r := &routing{ns: ns, service: app, latest: map[string]map[types.UID]bool{}}
	w, err := suite.Kube.DiscoveryV1().EndpointSlices(ns).Watch(t.Context(), metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + app,
	})
	if err != nil {
		t.Fatalf("watch EndpointSlices: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if s, ok := e.Object.(*discoveryv1.EndpointSlice); ok {
				r.route(e.Type, s)
			}
		}
	}()
	stop := suite.feed.follow(func(s step) {
		if s.pod().Namespace == ns {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.steps = append(r.steps, s)
		}
	})
	t.Cleanup(func() { stop(); w.Stop(); <-done })
	return r
}

func (r *routing) route(kind watch.EventType, s *discoveryv1.EndpointSlice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ready := map[types.UID]bool{}
	for _, e := range s.Endpoints {
		if kind != watch.Deleted && e.TargetRef != nil && e.Conditions.Ready != nil && *e.Conditions.Ready {
			ready[e.TargetRef.UID] = true
		}
	}
	r.latest[s.Name] = ready
	all := map[types.UID]bool{}
	for _, ready := range r.latest {
		maps.Copy(all, ready)
	}
	r.slices = append(r.slices, routes{version(s.ResourceVersion), all})
}

// has waits until the Service routes to n pods.
func (r *routing) has(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("Service %s routes to %d pods", r.service, n), func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		got := 0
		if last := len(r.slices) - 1; last >= 0 {
			got = len(r.slices[last].ready)
		}
		if got != n {
			return fmt.Errorf("it routes to %d", got)
		}
		return nil
	})
}

// served waits until the Service routes to n pods, from when on neverFewer judges.
func (r *routing) served(t *testing.T, n int) {
	t.Helper()
	r.has(t, n)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = len(r.slices) - 1
}

// neverFewer checks that the Service routed to at least n pods at any moment since served.
func (r *routing) neverFewer(t *testing.T, n int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var course []int
	fewest := n
	for _, s := range r.slices[r.since:] {
		course = append(course, len(s.ready))
		fewest = min(fewest, len(s.ready))
	}
	if fewest < n {
		t.Errorf("Service %s routed to %v pods, and should have had at least %d at any moment", r.service, course, n)
	}
}

// at returns the pods that were ready in the Service at a version.
func (r *routing) at(v uint64) map[types.UID]bool {
	var ready map[types.UID]bool
	for _, s := range r.slices {
		if s.from <= v {
			ready = s.ready
		}
	}
	return ready
}

// neverWhileChanging checks that no pod was ready in the Service from when one of
// its containers was replaced until the pod was Ready again; and, strictly, from
// when its spec changed: those who route may lag behind the pod's own condition,
// which only a grace period covers. It returns how many changes it saw.
func (r *routing) neverWhileChanging(t *testing.T, strictly bool) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := 0
	changing := map[types.UID]uint64{}
	for _, s := range r.steps {
		if s.Old == nil || s.New == nil || s.Old.UID != s.New.UID {
			continue
		}
		v := version(s.New.ResourceVersion)
		if since, ok := changing[s.New.UID]; ok && isReady(s.New) {
			delete(changing, s.New.UID)
			changes++
			r.absent(t, s.New, since, v)
		}
		if _, ok := changing[s.New.UID]; ok {
			continue
		}
		for _, c := range s.New.Spec.Containers {
			before, after := container(s.Old, c.Name), container(s.New, c.Name)
			replaced := before != nil && after != nil && before.ContainerID != "" && before.ContainerID != after.ContainerID
			if replaced || strictly && image(s.Old, c.Name) != c.Image {
				changing[s.New.UID] = v
			}
		}
	}
	return changes
}

func (r *routing) absent(t *testing.T, p *corev1.Pod, from, to uint64) {
	t.Helper()
	if r.at(from)[p.UID] {
		t.Errorf("pod %s was ready in its Service when it began to change", p.Name)
	}
	for _, s := range r.slices {
		if s.from > from && s.from < to && s.ready[p.UID] {
			t.Errorf("pod %s became ready in its Service while it changed", p.Name)
		}
	}
}
