package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return c.TApps(namespace).List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return c.TApps(namespace).Watch(ctx, opts)
		},
	}
	informer := cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, c), &tappv1.TApp{},
		cache.SharedIndexInformerOptions{
			Indexers:          cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			ObjectDescription: tappv1.Resource().GroupResource().String(),
		})
	if transform != nil {
		if err := informer.SetTransform(transform); err != nil {
			return nil, err
		}
	}
	return cache.NewTypedSharedIndexInformer[*tappv1.TApp](informer), nil
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
