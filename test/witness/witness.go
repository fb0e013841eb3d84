// Package witness watches every step of the TApps' pods in a namespace for what must
// never happen, whatever a test is about:
//
//	S1  two pods that have not ended for one instance
//	S2  more instances out of service than the budget allows, those aside that only
//	    Kubernetes' node controller says are not ready: for a while after an outage of
//	    the API server it takes nodes for silent whose leases it has not read yet
//	S4  a pod on a node that goes without having been told to end
//	S5  an image that changes while the pod is still in its Services
//
// and keeps what each instance went through.
package witness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolswatch "k8s.io/client-go/tools/watch"

	"tkestack.io/tapp/controller/cache"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Witness of the pods of one namespace.
type Witness struct {
	client corev1client.PodInterface
	mu     sync.Mutex
	seen   string                 // the version of the last step
	pods   map[string]*corev1.Pod // that have not gone
	uids   map[string][]types.UID // that a name ever had
	faults []string
	budget int             // how many may be out of service; -1: not watched
	spared map[string]bool // names whose outage is not the budget's
	silent map[string]bool // names of pods that are not ready because of their nodes
	follow func(before, after *corev1.Pod)
}

// Watch makes a witness whose faults fail the test at its end. It sees every step
// from now on, but for those that the API server has forgotten when it was away.
func Watch(t *testing.T, pods corev1client.PodInterface) *Witness {
	t.Helper()
	w := newWitness(pods)
	ctx, cancel := context.WithCancel(context.Background()) // not the test's, which ends before its cleanups
	version, err := w.list(ctx)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx, version)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, f := range w.faults {
			t.Error(f)
		}
	})
	return w
}

func newWitness(pods corev1client.PodInterface) *Witness {
	return &Witness{client: pods, pods: map[string]*corev1.Pod{}, uids: map[string][]types.UID{}, budget: -1,
		spared: map[string]bool{}, silent: map[string]bool{}}
}

// run follows the pods; a watch that cannot be continued begins anew.
func (w *Witness) run(ctx context.Context, version string) {
	for ctx.Err() == nil {
		events, err := toolswatch.NewRetryWatcherWithContext(ctx, version, watcher{w.client})
		if err != nil {
			w.mu.Lock()
			w.faults = append(w.faults, fmt.Sprint("the witness cannot watch: ", err))
			w.mu.Unlock()
			return
		}
		for e := range events.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				w.see(e.Type, pod)
			}
		}
		_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			version, err = w.list(ctx)
			return err == nil, nil
		}) // ends with ctx only
	}
}

type watcher struct{ pods corev1client.PodInterface }

func (w watcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return w.pods.Watch(ctx, o)
}

// list takes the pods as they are: what happened to them since the last time is
// not known.
func (w *Witness) list(ctx context.Context) (string, error) {
	list, err := w.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = list.ResourceVersion
	clear(w.pods)
	clear(w.silent)
	for i := range list.Items {
		pod := &list.Items[i]
		if !ours(pod) {
			continue
		}
		if !slices.Contains(w.uids[pod.Name], pod.UID) {
			w.uids[pod.Name] = append(w.uids[pod.Name], pod.UID)
		}
		w.pods[pod.Name] = pod
	}
	return list.ResourceVersion, nil
}

// Follow has a function called with every step from now on; before or after is
// nil for a pod that came or went. It must not block.
func (w *Witness) Follow(f func(before, after *corev1.Pod)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.follow = f
}

func (w *Witness) see(kind watch.EventType, pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = pod.ResourceVersion
	before := w.pods[pod.Name]
	if before == nil && !ours(pod) {
		return
	}
	if kind == watch.Deleted {
		w.gone(before)
		return
	}
	same := before != nil && before.UID == pod.UID
	if !same {
		w.uids[pod.Name] = append(w.uids[pod.Name], pod.UID)
	}
	w.pods[pod.Name] = pod
	switch {
	case same && InService(before) && isNodeSilent(pod):
		w.silent[pod.Name] = true
	case !isNodeSilent(pod):
		delete(w.silent, pod.Name)
	}
	w.single(pod)
	if out := w.outOfService(); w.budget >= 0 && len(out) > w.budget {
		w.fault(pod, "S2: %d instances are out of service; the budget allows %d: %s", len(out), w.budget, strings.Join(out, "; "))
	}
	if same && before.Spec.Containers[0].Image != pod.Spec.Containers[0].Image && InService(before) && drained(pod) {
		w.fault(pod, "S5: the image changed before the pod was drained")
	}
	if w.follow != nil {
		w.follow(before, pod)
	}
}

func (w *Witness) gone(before *corev1.Pod) {
	if before == nil {
		return
	}
	delete(w.pods, before.Name)
	delete(w.silent, before.Name)
	if before.DeletionTimestamp == nil && before.Spec.NodeName != "" && !ended(before) {
		w.fault(before, "S4: it went by force")
	}
	if w.follow != nil {
		w.follow(before, nil)
	}
}

func (w *Witness) single(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || ended(pod) {
		return
	}
	id := pod.Labels[tappv1.LabelInstanceID]
	for name, p := range w.pods {
		other := metav1.GetControllerOf(p)
		if name != pod.Name && other != nil && other.UID == owner.UID && p.Labels[tappv1.LabelInstanceID] == id && !ended(p) {
			w.fault(pod, "S1: instance %s/%s has the pod %s too", owner.Name, id, name)
		}
	}
}

// outOfService says of each instance that is out of service how it is, in the order of
// the names.
func (w *Witness) outOfService() []string {
	var out []string
	for name := range w.uids {
		if p := w.pods[name]; !w.spared[name] && !w.silent[name] && (p == nil || !InService(p)) {
			out = append(out, name+" "+how(p))
		}
	}
	slices.Sort(out)
	return out
}

func (w *Witness) fault(pod *corev1.Pod, format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("pod %s at %s: %s", pod.Name, pod.ResourceVersion, fmt.Sprintf(format, args...)))
}

// Expect sets what the next steps may do: how many of the names that have had a
// pod may be out of service, beside those that are spared; -1: any number. It returns
// when the witness, who comes behind, has seen the steps until now.
func (w *Witness) Expect(budget int, spared ...string) {
	err := w.catchUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.faults = append(w.faults, fmt.Sprint("the witness does not catch up: ", err))
	}
	w.budget = budget
	clear(w.spared)
	for _, s := range spared {
		w.spared[s] = true
	}
}

// catchUp waits until the pods have been seen as they are now, or newer.
func (w *Witness) catchUp() error {
	const patience = 3 * time.Minute
	now := ""
	return wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if now == "" {
			list, err := w.client.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, nil //nolint:nilerr // the API server may be away
			}
			for i := range list.Items {
				if v := list.Items[i].ResourceVersion; cache.Newer(v, now) {
					now = v
				}
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return !cache.Newer(now, w.seen), nil
	})
}

// Lives is how many pods a name has had.
func (w *Witness) Lives(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.uids[name])
}
