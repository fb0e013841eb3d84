package tapp

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/shell"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// The guard knows nothing of what an earlier leader wrote. So that a new one does
// not plan on caches that lack those writes, it first compares them with one
// consistent list, and waits until they have got there.
const (
	takeOverMost = 10 * time.Second
	takeOverPoll = 20 * time.Millisecond
	takeOverPage = 500
)

// takeOver waits until the caches have caught up with the API server. When that
// takes too long it goes on: every single write is still conditional.
func (c *Controller) takeOver(ctx context.Context) {
	logger := klog.FromContext(ctx)
	ctx, cancel := context.WithTimeout(ctx, takeOverMost)
	defer cancel()
	began := c.Clock.Now()
	for _, behind := range []struct {
		store cache.Store
		list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
		label string
	}{
		{c.tapps.GetStore(), func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.TApps.TApps(c.Namespace).List(ctx, o)
		}, ""},
		{c.pods.GetStore(), func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.Core.Pods(c.Namespace).List(ctx, o)
		}, tappv1.LabelInstanceID},
	} {
		live, err := take(ctx, metav1.ListOptions{LabelSelector: behind.label, Limit: takeOverPage}, behind.list)
		if err != nil {
			logger.Error(err, "Cannot tell whether the caches are current")
			return
		}
		for !live.reached(behind.store) {
			select {
			case <-ctx.Done():
				logger.Info("The caches are still behind what the API server said at the take-over", "waited", c.Clock.Since(began))
				return
			case <-c.Clock.After(takeOverPoll):
			}
		}
	}
	logger.V(2).Info("The caches are current", "waited", c.Clock.Since(began))
}

// inventory is what a consistent list said: the list's version, and the objects'.
type inventory struct {
	version string
	objects map[string]string
}

func take(ctx context.Context, o metav1.ListOptions, list func(context.Context, metav1.ListOptions) (runtime.Object, error)) (*inventory, error) {
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
func (i *inventory) reached(store cache.Store) bool {
	if !shell.Newer(i.version, store.LastStoreSyncResourceVersion()) {
		return true
	}
	// The list's version may be that of an object of another kind, which the store
	// never sees. Then what it holds has to tell.
	for name, version := range i.objects {
		object, exists, _ := store.GetByKey(name)
		if !exists || shell.Newer(version, versionOf(object)) {
			return false
		}
	}
	for _, object := range store.List() {
		m, err := meta.Accessor(object)
		if err != nil {
			continue
		}
		if _, listed := i.objects[m.GetNamespace()+"/"+m.GetName()]; !listed && shell.Newer(i.version, m.GetResourceVersion()) {
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
