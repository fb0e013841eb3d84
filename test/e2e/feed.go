//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// step is one change of one pod, as the API server told of it.
type step struct {
	// Old is the pod before, or nil; New the pod after, or nil when it went.
	Old, New *corev1.Pod
	// Gap: the watch was interrupted, and there may have been steps between the two.
	Gap bool
}

func (s step) pod() *corev1.Pod {
	if s.New != nil {
		return s.New
	}
	return s.Old
}

// feed follows all pods of the cluster. Its followers see every step in order,
// one at a time.
type feed struct {
	mu        sync.Mutex
	pods      map[types.NamespacedName]*corev1.Pod
	followers map[int]func(step)
	next      int
}

// startFeed returns when the feed knows all pods.
func startFeed(ctx context.Context) (*feed, error) {
	f := &feed{pods: map[types.NamespacedName]*corev1.Pod{}, followers: map[int]func(step){}}
	version, err := f.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list all pods: %w", err)
	}
	go f.run(ctx, version)
	return f, nil
}

// follow calls back for every step from now on, until stop is called.
func (f *feed) follow(callback func(step)) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.next
	f.next++
	f.followers[id] = callback
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followers, id)
	}
}

// run watches, and lists anew whenever the watch cannot go on.
func (f *feed) run(ctx context.Context, version string) {
	for ctx.Err() == nil {
		if version == "" {
			var err error
			if version, err = f.list(ctx); err != nil {
				select { // the API server is away
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
				continue
			}
		}
		version = f.watch(ctx, version)
	}
}

func (f *feed) list(ctx context.Context) (version string, err error) {
	list, err := suite.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	present := map[types.NamespacedName]bool{}
	for i := range list.Items {
		p := &list.Items[i]
		key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
		present[key] = true
		if old := f.pods[key]; old == nil || old.ResourceVersion != p.ResourceVersion {
			f.tell(step{Old: old, New: p, Gap: true})
		}
	}
	for key, old := range f.pods {
		if !present[key] {
			f.tell(step{Old: old, Gap: true})
		}
	}
	return list.ResourceVersion, nil
}

// watch returns the version to go on from, or "" when there is none.
func (f *feed) watch(ctx context.Context, version string) string {
	w, err := suite.Kube.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{
		ResourceVersion: version, AllowWatchBookmarks: true,
	})
	if err != nil {
		return ""
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok {
			return "" // an error, such as a version that is too old
		}
		version = p.ResourceVersion
		if e.Type == watch.Bookmark {
			continue
		}
		f.mu.Lock()
		old := f.pods[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
		switch {
		case e.Type != watch.Deleted:
			f.tell(step{Old: old, New: p})
		case old != nil:
			f.tell(step{Old: old})
		}
		f.mu.Unlock()
	}
	return version
}

// tell is called with the lock held.
func (f *feed) tell(s step) {
	key := types.NamespacedName{Namespace: s.pod().Namespace, Name: s.pod().Name}
	if s.New != nil {
		f.pods[key] = s.New
	} else {
		delete(f.pods, key)
	}
	for _, follow := range f.followers {
		follow(s)
	}
}

// version is the place of a pod in the order of all writes to the cluster.
func version(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		panic("resourceVersion " + resourceVersion + " is no number")
	}
	return n
}
