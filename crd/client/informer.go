package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// newInformer makes an informer of objects of a kind. It never resyncs: handlers see
// real changes only. The transform, which may be nil, edits every object before it
// is cached.
func newInformer[T object, L runtime.Object](objects Objects[T, L], k kind[T, L], transform cache.TransformFunc) (cache.TypedSharedIndexInformer[T], error) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, opts)
		},
		WatchFuncWithContext: objects.Watch,
	}
	informer := cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, objects), k.newObject(),
		cache.SharedIndexInformerOptions{
			Indexers:          cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			ObjectDescription: k.resource.GroupResource().String(),
		})
	if transform != nil {
		if err := informer.SetTransform(transform); err != nil {
			return nil, err
		}
	}
	return cache.NewTypedSharedIndexInformer[T](informer), nil
}
