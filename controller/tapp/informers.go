package tapp

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// byStem indexes objects by namespace and name without the instance id. A pod's
// name is its identity: under a TApp's stem are the pods that it owns, those that
// it may adopt, and those of others that take its names.
const byStem = "stem"

// makeInformers makes the caches. The API server filters pods and claims by the
// label that all of ours carry: a cluster has many times more of others.
func (c *Controller) makeInformers() error {
	var err error
	if c.tapps, err = client.NewInformer(c.Watching.TApps, c.Namespace, trim); err != nil {
		return err
	}
	c.lister = client.NewLister(c.tapps)
	pods, claims := c.Watching.Core.Pods(c.Namespace), c.Watching.Core.PersistentVolumeClaims(c.Namespace)
	if c.pods, err = newInformer(c.Watching.Core, &corev1.Pod{}, newCompactor().compact, pods.Watch,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }); err != nil {
		return err
	}
	if c.claims, err = newInformer(c.Watching.Core, &corev1.PersistentVolumeClaim{}, trim, claims.Watch,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return claims.List(ctx, o) }); err != nil {
		return err
	}
	return errors.Join(handle(c.tapps, c.enqueue), handle(c.pods, c.enqueuePod), handle(c.claims, c.enqueueClaim))
}

func (c *Controller) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{c.tapps, c.pods, c.claims}
}

// newInformer makes an informer of the objects with an instance id. It is not
// taken from client-go's factory, which would link a client of every API group.
func newInformer[T interface {
	cache.Object
	runtime.Object
}](c any, example T, transform cache.TransformFunc, watches cache.WatchFuncWithContext, lists cache.ListWithContextFunc) (cache.TypedSharedIndexInformer[T], error) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = tappv1.LabelInstanceID
			return lists(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = tappv1.LabelInstanceID
			return watches(ctx, o)
		},
	}
	informer := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, c), example,
		cache.SharedIndexInformerOptions{Indexers: cache.Indexers{byStem: indexByStem}})
	return cache.NewTypedSharedIndexInformer[T](informer), informer.SetTransform(transform)
}

func indexByStem(object any) ([]string, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	if s, ok := stem(m.GetName()); ok {
		return []string{m.GetNamespace() + "/" + s}, nil
	}
	return nil, nil
}

// stem is a name without the instance id at its end.
func stem(name string) (string, bool) {
	s := strings.TrimRight(name, "0123456789")
	if len(s) == len(name) || len(s) < 2 || s[len(s)-1] != '-' {
		return "", false
	}
	return s[:len(s)-1], true
}

// handle has every event of an informer enqueue what the object's name says. The
// name is enough, so that a deletion that was only noticed later is no special
// case.
func handle[T cache.Object](informer cache.TypedSharedIndexInformer[T], enqueue func(cache.ObjectName)) error {
	changed := func(o T) { enqueue(cache.ObjectName{Namespace: o.GetNamespace(), Name: o.GetName()}) }
	_, err := informer.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[T]{
		AddFunc:    changed,
		UpdateFunc: func(_, o T) { changed(o) },
		DeleteFunc: func(o cache.DeletedObject[T]) { enqueue(o.GetObjectName()) },
	})
	return err
}

// enqueue is for events of TApps. Those that our own status writes cause are not
// left out: the planner reads the status, and there are at most two a second.
func (c *Controller) enqueue(n cache.ObjectName) {
	c.loop.Enqueue(loop.Key{Namespace: n.Namespace, Name: n.Name})
}

// enqueuePod is for events of pods: of the TApp that has the pod's name among
// those of its instances, whoever owns it.
func (c *Controller) enqueuePod(n cache.ObjectName) {
	if s, ok := stem(n.Name); ok {
		c.enqueueKnown(n.Namespace, s)
	}
}

// enqueueClaim is for events of claims, whose names are
// <claim template>-<tapp>-<id>. Either name can have dashes, so that every way
// to split them is tried.
func (c *Controller) enqueueClaim(n cache.ObjectName) {
	s, ok := stem(n.Name)
	for ok {
		if _, s, ok = strings.Cut(s, "-"); ok {
			c.enqueueKnown(n.Namespace, s)
		}
	}
}

// enqueueKnown enqueues a TApp if there is one. If there is not, the event of its
// creation will.
func (c *Controller) enqueueKnown(namespace, name string) {
	if _, exists, _ := c.tapps.GetStore().GetByKey(namespace + "/" + name); exists {
		c.loop.Enqueue(loop.Key{Namespace: namespace, Name: name})
	}
}
