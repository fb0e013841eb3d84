package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/tools/cache"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Informer is a shared informer of TApps whose handlers and indexers are typed.
type Informer = cache.TypedSharedIndexInformer[*tappv1.TApp]

// NewInformer makes an informer of the TApps in a namespace, or in all namespaces
// by metav1.NamespaceAll. It never resyncs: handlers see real changes only. The
// transform, which may be nil, edits every object before it is cached.
func NewInformer(c Interface, namespace string, transform cache.TransformFunc) (Informer, error) {
	return newInformer(source[*tappv1.TApp]{client: c, resource: tappv1.Resource().GroupResource(), example: &tappv1.TApp{}, transform: transform,
		lists: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return c.TApps(namespace).List(ctx, opts)
		},
		watches: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return c.TApps(namespace).Watch(ctx, opts)
		},
	})
}

// source of an informer's objects.
type source[T runtime.Object] struct {
	client    any // that lists and watches use
	resource  schema.GroupResource
	example   T
	lists     cache.ListWithContextFunc
	watches   cache.WatchFuncWithContext
	transform cache.TransformFunc
}

func newInformer[T interface {
	cache.Object
	runtime.Object
}](s source[T]) (cache.TypedSharedIndexInformer[T], error) {
	lw := &cache.ListWatch{ListWithContextFunc: s.lists, WatchFuncWithContext: s.watches}
	informer := cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, s.client), s.example,
		cache.SharedIndexInformerOptions{
			Indexers:          cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			ObjectDescription: s.resource.String(),
		})
	if s.transform != nil {
		if err := informer.SetTransform(s.transform); err != nil {
			return nil, err
		}
	}
	return cache.NewTypedSharedIndexInformer[T](informer), nil
}

// Lister reads TApps from an informer's cache. What it returns is shared: copy
// before writing to it.
type Lister struct {
	listers.ResourceIndexer[*tappv1.TApp]
}

// NewLister makes a lister of all namespaces that the informer watches.
func NewLister(informer cache.SharedIndexInformer) Lister {
	return Lister{listers.New[*tappv1.TApp](informer.GetIndexer(), tappv1.Resource().GroupResource())}
}

// TApps makes a lister of one namespace.
func (l Lister) TApps(namespace string) listers.ResourceIndexer[*tappv1.TApp] {
	return listers.NewNamespaced(l.ResourceIndexer, namespace)
}
