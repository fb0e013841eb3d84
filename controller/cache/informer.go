// Package cache is what a controller keeps in memory of a cluster, of any kind and of
// any cluster: informers that the API server filters (informer.go, informers.go), the
// guard against stores that lack our own writes (guard.go) and the views that it allows
// (observer.go), stores that catch up with what an earlier leader wrote (catchup.go),
// and what is kept of each object from sync to sync (perobject.go). It knows no kind.
package cache

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// Source of a cache: the objects that have a label.
type Source struct {
	// Client that Lists and Watches use.
	Client any
	// Label selector that the API server filters by.
	Label   string
	Index   toolscache.Indexers
	Lists   toolscache.ListWithContextFunc
	Watches toolscache.WatchFuncWithContext
}

// NewInformer makes an informer. It is not taken from client-go's factory, which
// would link a client of every API group.
func NewInformer[T interface {
	toolscache.Object
	runtime.Object
}](s Source, example T, transform toolscache.TransformFunc) (toolscache.TypedSharedIndexInformer[T], error) {
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = s.Label
			return s.Lists(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = s.Label
			return s.Watches(ctx, o)
		},
	}
	informer := toolscache.NewSharedIndexInformerWithOptions(toolscache.ToListWatcherWithWatchListSemantics(lw, s.Client), example,
		toolscache.SharedIndexInformerOptions{Indexers: s.Index})
	return toolscache.NewTypedSharedIndexInformer[T](informer), informer.SetTransform(transform)
}

// Handle has every event of an informer call enqueue with the object's name; an
// update does so once. The name is enough, so that a deletion that was only
// noticed later is no special case.
func Handle[T toolscache.Object](informer toolscache.TypedSharedIndexInformer[T], enqueue func(toolscache.ObjectName)) error {
	changed := func(o T) { enqueue(toolscache.ObjectName{Namespace: o.GetNamespace(), Name: o.GetName()}) }
	_, err := informer.AddTypedEventHandler(toolscache.TypedResourceEventHandlerFuncs[T]{
		AddFunc:    changed,
		UpdateFunc: func(_, o T) { changed(o) },
		DeleteFunc: func(o toolscache.DeletedObject[T]) { enqueue(o.GetObjectName()) },
	})
	return err
}

// ByLabel indexes objects by their namespace and their value of a label, as
// namespace/value.
func ByLabel(label string) toolscache.IndexFunc {
	return func(object any) ([]string, error) {
		m, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		return []string{m.GetNamespace() + "/" + m.GetLabels()[label]}, nil
	}
}

// Witness calls see with each object before it is cached, and with the one that the store has
// in its place. see may be nil.
func Witness(transform toolscache.TransformFunc, see func(before, now metav1.Object), store func() toolscache.Store) toolscache.TransformFunc {
	if see == nil {
		return transform
	}
	return func(object any) (any, error) {
		if now, ok := object.(metav1.Object); ok {
			if before, exists, err := store().GetByKey(toolscache.MetaObjectToName(now).String()); err == nil && exists {
				if before, ok := before.(metav1.Object); ok {
					see(before, now)
				}
			}
		}
		return transform(object)
	}
}

// Objects that an informer has cached. They are shared: copy before writing to one.
func Objects[T interface {
	toolscache.Object
	metav1.Object
}](informer toolscache.TypedSharedIndexInformer[T]) []metav1.Object {
	stored := informer.GetStore().List()
	out := make([]metav1.Object, 0, len(stored))
	for _, o := range stored {
		if object, ok := o.(metav1.Object); ok {
			out = append(out, object)
		}
	}
	return out
}

// Trim drops what no shell reads from an object that is about to be cached: the
// bookkeeping of server-side and client-side apply, often half of the bytes. One that has none
// is not written to: what it holds may be shared by then.
func Trim(object any) (any, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return object, nil // a tombstone
	}
	if m.GetManagedFields() != nil {
		m.SetManagedFields(nil)
	}
	// Deleting a key that is not there writes to the map, too.
	if annotations := m.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

// TrimOnce trims an object, and says whether it was not trimmed so before: client-go hands on
// each object of a list twice. By the second time the object may share what it holds with
// others that are cached, and must not be written to. An empty list of managed fields marks an
// object that was trimmed: what an API server sends has either none or some.
func TrimOnce(o metav1.Object) bool {
	if fields := o.GetManagedFields(); fields != nil && len(fields) == 0 {
		return false
	}
	_, _ = Trim(o) // it fails never
	o.SetManagedFields([]metav1.ManagedFieldsEntry{})
	return true
}
