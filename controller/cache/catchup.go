package cache

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// A guard knows nothing of what an earlier leader wrote. So that a new one does
// not plan on stores that lack those writes, it first compares them with one
// consistent list, and waits until they have got there.
const (
	catchUpTimeout = 10 * time.Second
	catchUpPoll    = 20 * time.Millisecond
	catchUpPage    = 500
)

// Resource that a store holds, as the API server lists it.
type Resource struct {
	Store toolscache.Store
	// Label selector of what the store holds; empty: everything.
	Label string
	List  toolscache.ListWithContextFunc
}

// CatchUp waits until the stores have caught up with the API server. When that
// takes too long it goes on: every single write is still conditional.
func CatchUp(ctx context.Context, clock clock.Clock, resources ...Resource) {
	logger := klog.FromContext(ctx)
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	began := clock.Now()
	for _, r := range resources {
		live, err := take(ctx, metav1.ListOptions{LabelSelector: r.Label, Limit: catchUpPage}, r.List)
		if err != nil {
			logger.Error(err, "Cannot tell whether the caches are current")
			return
		}
		for !live.reached(r.Store) {
			select {
			case <-ctx.Done():
				logger.Info("The caches are still behind what the API server said at the take-over", "waited", clock.Since(began))
				return
			case <-clock.After(catchUpPoll):
			}
		}
	}
	logger.V(2).Info("The caches are current", "waited", clock.Since(began))
}

// inventory is what a consistent list said: the list's version, and the objects'.
type inventory struct {
	version string
	objects map[string]string
}

func take(ctx context.Context, o metav1.ListOptions, list toolscache.ListWithContextFunc) (*inventory, error) {
	out := &inventory{objects: map[string]string{}}
	for {
		page, err := list(ctx, o)
		if err != nil {
			return nil, err
		}
		listed, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		out.version = listed.GetResourceVersion()
		if err := meta.EachListItem(page, func(object runtime.Object) error {
			m, err := meta.Accessor(object)
			if err == nil {
				out.objects[m.GetNamespace()+"/"+m.GetName()] = m.GetResourceVersion()
			}
			return err
		}); err != nil {
			return nil, err
		}
		if o.Continue = listed.GetContinue(); o.Continue == "" {
			return out, nil
		}
	}
}

// reached says whether a store shows the inventory or something newer.
func (i *inventory) reached(store toolscache.Store) bool {
	if !Newer(i.version, store.LastStoreSyncResourceVersion()) {
		return true
	}
	// The list's version may be that of an object of another kind, which the store
	// never sees. Then what it holds has to tell.
	for name, version := range i.objects {
		object, exists, _ := store.GetByKey(name)
		if !exists || Newer(version, versionOf(object)) {
			return false
		}
	}
	for _, object := range store.List() {
		m, err := meta.Accessor(object)
		if err != nil {
			continue
		}
		if _, listed := i.objects[m.GetNamespace()+"/"+m.GetName()]; !listed && Newer(i.version, m.GetResourceVersion()) {
			return false // gone by then
		}
	}
	return true
}

func versionOf(object any) string {
	m, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
