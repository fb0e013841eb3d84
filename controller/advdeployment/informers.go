package advdeployment

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/release"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/advdeployment"
)

const (
	// byOwner indexes children by their namespace and the AdvDeployment that their label
	// names.
	byOwner = "owner"
	// byChild indexes AdvDeployments by the children that they ask for, and autoscalers
	// by what they scale.
	byChild = "child"
	// storeOwn is the store of AdvDeployments that the guard of one waits for.
	storeOwn = "advdeployments"
)

// autoscalers are read, never written.
var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// resources of the children.
var resources = map[plan.Kind]schema.GroupVersionResource{
	plan.Service:     {Version: "v1", Resource: "services"},
	plan.TApp:        {Group: "apps.tkestack.io", Version: "v1", Resource: "tapps"},
	plan.StatefulSet: {Group: "apps", Version: "v1", Resource: "statefulsets"},
	plan.Deployment:  {Group: "apps", Version: "v1", Resource: "deployments"},
}

// makeInformers makes the caches. The API server filters the children by the label that
// all of ours carry.
func (c *Controller) makeInformers() error {
	var err error
	if c.deployments, err = client.NewAdvDeploymentInformer(c.Watching.AdvDeployments, c.Namespace, cache.Witness(cache.Trim, c.Incoming, func() toolscache.Store { return c.deployments.GetStore() })); err != nil {
		return err
	}
	if err := c.deployments.AddIndexers(toolscache.Indexers{byChild: indexByChild}); err != nil {
		return err
	}
	c.Informers = cache.Informers{c.deployments}
	c.observer.Stores = cache.Stores{storeOwn: c.deployments.GetStore()}
	errs := []error{cache.Handle(c.deployments, func(n toolscache.ObjectName) { c.loop.Enqueue(loop.Key{Namespace: n.Namespace, Name: n.Name}) })}
	for _, kind := range plan.Kinds() {
		informer, err := c.informer(resources[kind], v1beta1.LabelAdvDeployment, toolscache.Indexers{byOwner: cache.ByLabel(v1beta1.LabelAdvDeployment)})
		if err != nil {
			return err
		}
		c.children[kind], c.observer.Stores[string(kind)] = informer, informer.GetStore()
		c.Informers = append(c.Informers, informer)
		errs = append(errs, handle(informer, func(o *unstructured.Unstructured) {
			c.enqueueKnown(loop.Key{Namespace: o.GetNamespace(), Name: o.GetLabels()[v1beta1.LabelAdvDeployment]})
			c.enqueueAsking(o.GetNamespace(), plan.Child{Kind: kind, Name: o.GetName()})
		}))
	}
	if c.autoscalers, err = c.informer(autoscalers, "", toolscache.Indexers{byChild: indexByTarget}); err != nil {
		return err
	}
	c.Informers = append(c.Informers, c.autoscalers)
	errs = append(errs, handle(c.autoscalers, c.enqueueScaled))
	errs = append(errs, c.watchRollouts())
	return errors.Join(errs...)
}

func (c *Controller) informer(resource schema.GroupVersionResource, label string, index toolscache.Indexers) (childInformer, error) {
	objects := c.Watching.Children.Resource(resource).Namespace(c.Namespace)
	source := cache.Source{Client: c.Watching.Children, Label: label, Index: index, Watches: objects.Watch}
	source.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) }
	return cache.NewInformer(source, &unstructured.Unstructured{}, trim)
}

// trim drops a child's managed fields. If another manager than ours owns spec.replicas, it
// notes that in an annotation.
func trim(object any) (any, error) {
	if o, ok := object.(*unstructured.Unstructured); ok {
		markReplicas(o)
	}
	return cache.Trim(object)
}

// markReplicas sets AnnotationReplicasBy to the manager that owns spec.replicas, if that is
// not ours.
func markReplicas(o *unstructured.Unstructured) {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == v1beta1.Component || entry.Manager == release.FieldManager || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Spec struct {
				Replicas *struct{} `json:"f:replicas"`
			} `json:"f:spec"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err == nil && fields.Spec.Replicas != nil {
			annotations := o.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[plan.AnnotationReplicasBy] = entry.Manager
			o.SetAnnotations(annotations)
			return
		}
	}
}

func childKey(namespace string, child plan.Child) string {
	return string(child.Kind) + "/" + namespace + "/" + child.Name
}

func indexByChild(object any) (out []string, _ error) {
	if d, ok := object.(*v1beta1.AdvDeployment); ok {
		for _, child := range plan.Children(d) {
			out = append(out, childKey(d.Namespace, child))
		}
	}
	return out, nil
}

func indexByTarget(object any) ([]string, error) {
	if o, ok := object.(*unstructured.Unstructured); ok {
		target := targetOf(o)
		return []string{targetKey(target.GroupVersionKind().GroupKind(), o.GetNamespace(), target.Name)}, nil
	}
	return nil, nil
}

// targetKey names what an autoscaler scales. The group counts: a StatefulSet of another API is another object.
func targetKey(kind schema.GroupKind, namespace, name string) string {
	return kind.String() + "/" + namespace + "/" + name
}

// targetOf an autoscaler.
func targetOf(o *unstructured.Unstructured) corev1.ObjectReference {
	target, _, _ := unstructured.NestedStringMap(o.Object, "spec", "scaleTargetRef")
	return corev1.ObjectReference{APIVersion: target["apiVersion"], Kind: target["kind"], Name: target["name"]}
}

// enqueueScaled enqueues the AdvDeployments that ask for what an autoscaler scales.
func (c *Controller) enqueueScaled(o *unstructured.Unstructured) {
	target := targetOf(o)
	child := plan.Child{Kind: plan.Kind(target.Kind), Name: target.Name}
	if target.GroupVersionKind().GroupKind() == child.Kind.GroupKind() {
		c.enqueueAsking(o.GetNamespace(), child)
	}
}

// isScaled says whether an autoscaler scales an object.
func (c *Controller) isScaled(kind schema.GroupKind, namespace, name string) bool {
	keys, err := c.autoscalers.GetIndexer().IndexKeys(byChild, targetKey(kind, namespace, name))
	return err == nil && len(keys) > 0
}

// handle calls changed with the object before and after each event.
func handle(informer childInformer, changed func(*unstructured.Unstructured)) error {
	_, err := informer.AddTypedEventHandler(toolscache.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{
		AddFunc:    changed,
		UpdateFunc: func(before, now *unstructured.Unstructured) { changed(before); changed(now) },
		DeleteFunc: func(o toolscache.DeletedObject[*unstructured.Unstructured]) {
			if o.OptionalObj != nil {
				changed(o.OptionalObj)
			}
		},
	})
	return err
}

// enqueueAsking enqueues the AdvDeployments that ask for a child.
func (c *Controller) enqueueAsking(namespace string, child plan.Child) {
	keys, err := c.deployments.GetIndexer().IndexKeys(byChild, childKey(namespace, child))
	if err != nil {
		return // New has added this index
	}
	for _, key := range keys {
		if name, err := toolscache.ParseObjectName(key); err == nil {
			c.loop.Enqueue(loop.Key{Namespace: name.Namespace, Name: name.Name})
		}
	}
}

// enqueueKnown enqueues an AdvDeployment if it exists. Otherwise the event of its creation
// will enqueue it.
func (c *Controller) enqueueKnown(k loop.Key) {
	if _, exists, _ := c.deployments.GetStore().GetByKey(k.String()); exists {
		c.loop.Enqueue(k)
	}
}
