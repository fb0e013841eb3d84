package cache

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// Informers of a controller, whose stores are its caches.
type Informers []toolscache.SharedIndexInformer

// Watch fills the caches and keeps them current until ctx ends. A standby watches
// too, so that it takes over without listing anything.
func (c Informers) Watch(ctx context.Context) {
	var informers sync.WaitGroup
	for _, i := range c {
		informers.Go(func() { i.RunWithContext(ctx) })
	}
	informers.Wait()
}

// HasSynced says whether the caches have been filled.
func (c Informers) HasSynced() bool {
	return !slices.ContainsFunc(c, func(i toolscache.SharedIndexInformer) bool { return !i.HasSynced() })
}

// Keys of all objects in a cache, in order.
func Keys[T toolscache.Object](informer toolscache.TypedSharedIndexInformer[T]) []types.NamespacedName {
	stored := informer.GetStore().List()
	out := make([]types.NamespacedName, 0, len(stored))
	for _, object := range stored {
		if o, ok := object.(T); ok {
			out = append(out, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
		}
	}
	slices.SortFunc(out, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}
