package app

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/loop"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
	plan "tkestack.io/tapp/plan/app"
)

const (
	// byApp indexes children by their namespace and the App that their label names.
	byApp = "app"
	// byChild indexes Apps by the children that they name.
	byChild = "child"
)

// storeApps is the store of Apps that the guard of an App waits for.
const storeApps = "apps"

// storeOf the children of a kind.
func storeOf(kind plan.Kind) string { return string(kind) }

// makeInformers makes the caches. The API server filters the children by the label
// that all of ours carry.
func (c *Controller) makeInformers() error {
	var err error
	if c.apps, err = client.NewAppInformer(c.Watching.Apps, c.Namespace, cache.Witness(cache.Trim, c.Incoming, func() toolscache.Store { return c.apps.GetStore() })); err != nil {
		return err
	}
	if err := c.apps.AddIndexers(toolscache.Indexers{byChild: indexByChild}); err != nil {
		return err
	}
	deployments, services := c.Watching.Deployments.Deployments(c.Namespace), c.Watching.Services.Services(c.Namespace)
	children := cache.Source{Client: c.Watching.Deployments, Label: appv1.LabelApp, Index: toolscache.Indexers{byApp: cache.ByLabel(appv1.LabelApp)}, Watches: deployments.Watch}
	children.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return deployments.List(ctx, o)
	}
	if c.deployments, err = cache.NewInformer(children, &appsv1.Deployment{}, cache.Trim); err != nil {
		return err
	}
	children.Client, children.Watches = c.Watching.Services, services.Watch
	children.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return services.List(ctx, o) }
	if c.services, err = cache.NewInformer(children, &corev1.Service{}, cache.Trim); err != nil {
		return err
	}
	c.Informers = cache.Informers{c.apps, c.deployments, c.services}
	c.observer.Stores = cache.Stores{storeApps: c.apps.GetStore(), storeOf(plan.Deployment): c.deployments.GetStore(), storeOf(plan.Service): c.services.GetStore()}
	return errors.Join(
		cache.Handle(c.apps, func(n toolscache.ObjectName) { c.loop.Enqueue(loop.Key{Namespace: n.Namespace, Name: n.Name}) }),
		handleChild(c, c.deployments, plan.Deployment),
		handleChild(c, c.services, plan.Service),
	)
}

func indexByChild(object any) ([]string, error) {
	a, ok := object.(*appv1.App)
	if !ok {
		return nil, nil
	}
	var out []string
	for _, child := range children(a) {
		out = append(out, childKey(child.Kind, a.Namespace, child.Name))
	}
	return out, nil
}

func childKey(kind plan.Kind, namespace, name string) string {
	return string(kind) + "/" + namespace + "/" + name
}

// children that an App names.
func children(a *appv1.App) []plan.Child {
	var out []plan.Child
	for _, child := range []plan.Child{{Kind: plan.Deployment, Name: a.Spec.DeploymentTemplate.Name}, {Kind: plan.Service, Name: a.Spec.ServiceTemplate.Name}} {
		if child.Name != "" {
			out = append(out, child)
		}
	}
	return out
}

// handleChild has events of children enqueue the Apps that name them, among them
// those that wait for the name, and the App that the label names: before the event
// and after it.
func handleChild[T interface {
	toolscache.Object
	metav1.Object
}](c *Controller, informer toolscache.TypedSharedIndexInformer[T], kind plan.Kind) error {
	changed := func(objects ...T) {
		for _, o := range objects {
			c.enqueueKnown(loop.Key{Namespace: o.GetNamespace(), Name: o.GetLabels()[appv1.LabelApp]})
		}
		c.enqueueNaming(kind, toolscache.ObjectName{Namespace: objects[0].GetNamespace(), Name: objects[0].GetName()})
	}
	_, err := informer.AddTypedEventHandler(toolscache.TypedResourceEventHandlerFuncs[T]{
		AddFunc:    func(o T) { changed(o) },
		UpdateFunc: func(before, o T) { changed(before, o) },
		DeleteFunc: func(o toolscache.DeletedObject[T]) {
			var none T
			if o.OptionalObj != none {
				changed(o.OptionalObj)
			}
			c.enqueueNaming(kind, o.GetObjectName())
		},
	})
	return err
}

func (c *Controller) enqueueNaming(kind plan.Kind, n toolscache.ObjectName) {
	keys, err := c.apps.GetIndexer().IndexKeys(byChild, childKey(kind, n.Namespace, n.Name))
	if err != nil {
		return // there is no such index, and New would have said so
	}
	for _, key := range keys {
		if name, err := toolscache.ParseObjectName(key); err == nil {
			c.loop.Enqueue(loop.Key{Namespace: name.Namespace, Name: name.Name})
		}
	}
}

// enqueueKnown enqueues an App if there is one. If there is not, the event of its
// creation will.
func (c *Controller) enqueueKnown(k loop.Key) {
	if _, exists, _ := c.apps.GetStore().GetByKey(k.String()); exists {
		c.loop.Enqueue(k)
	}
}
