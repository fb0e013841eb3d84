// Package shell is what the shells of the kinds have in common, around their
// planners: caches that the API server filters (informer.go, caches.go), which
// versions they have seen (version.go), what is remembered from sync to sync
// (memories.go), statuses as patches (status.go), and what errors of the API server
// mean (errors.go). It knows no kind.
package shell

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Source of a cache: the objects that have a label.
type Source struct {
	// Client that Lists and Watches use.
	Client any
	// Label selector that the API server filters by.
	Label   string
	Index   cache.Indexers
	Lists   cache.ListWithContextFunc
	Watches cache.WatchFuncWithContext
}

// NewInformer makes an informer. It is not taken from client-go's factory, which
// would link a client of every API group.
func NewInformer[T interface {
	cache.Object
	runtime.Object
}](s Source, example T, transform cache.TransformFunc) (cache.TypedSharedIndexInformer[T], error) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = s.Label
			return s.Lists(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = s.Label
			return s.Watches(ctx, o)
		},
	}
	informer := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, s.Client), example,
		cache.SharedIndexInformerOptions{Indexers: s.Index})
	return cache.NewTypedSharedIndexInformer[T](informer), informer.SetTransform(transform)
}

// Handle has every event of an informer call enqueue with the object's name; an
// update does so once. The name is enough, so that a deletion that was only
// noticed later is no special case.
func Handle[T cache.Object](informer cache.TypedSharedIndexInformer[T], enqueue func(cache.ObjectName)) error {
	changed := func(o T) { enqueue(cache.ObjectName{Namespace: o.GetNamespace(), Name: o.GetName()}) }
	_, err := informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[T]{
		AddFunc:    changed,
		UpdateFunc: func(_, o T) { changed(o) },
		DeleteFunc: func(o cache.DeletedObject[T]) { enqueue(o.GetObjectName()) },
	})
	return err
}

// ByLabel indexes objects by their namespace and their value of a label, as
// namespace/value.
func ByLabel(label string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		m, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		return []string{m.GetNamespace() + "/" + m.GetLabels()[label]}, nil
	}
}

// Trim drops what no shell reads from an object that is about to be cached: the
// bookkeeping of server-side and client-side apply, often half of the bytes.
func Trim(object any) (any, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return object, nil // a tombstone
	}
	m.SetManagedFields(nil)
	delete(m.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	return object, nil
}
