package advdeployment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/advdeployment"
)

// view is what the planner sees of one AdvDeployment. Its objects are shared with the
// caches: nobody may write to them.
type view struct {
	deployment *v1beta1.AdvDeployment
	children   map[plan.Child]*unstructured.Unstructured
	autoscaled map[plan.Child]bool
	// isLive says that the view was read from the API server, not from the caches.
	isLive bool
	// refused says why the API server refused a child in this sync.
	refused map[plan.Child]string
	// revisions and confirmations, if no AppSet made the AdvDeployment. outdated: the stored
	// record has changed since.
	revisions     []*appsv1.ControllerRevision
	confirmations []*v1beta1.Confirmation
	outdated      bool
	// corrected are the children that were corrected in this sync. That is tried once.
	corrected map[plan.Child]bool
}

func newView(d *v1beta1.AdvDeployment) *view {
	return &view{
		deployment: d, children: map[plan.Child]*unstructured.Unstructured{}, autoscaled: map[plan.Child]bool{},
		refused: map[plan.Child]string{}, corrected: map[plan.Child]bool{},
	}
}

func (v *view) input(o *object, now time.Time) plan.Input {
	return plan.Input{
		AdvDeployment: v.deployment, Children: slices.Collect(maps.Values(v.children)), Autoscaled: v.autoscaled,
		Overruled: o.overruled, Refused: v.refused, Revisions: v.revisions, Confirmations: v.confirmations, Now: now,
	}
}

// Versions are the resourceVersions of the objects in the view, by UID.
func (v *view) Versions() map[types.UID]string {
	out := map[types.UID]string{v.deployment.UID: v.deployment.ResourceVersion}
	for _, o := range v.children {
		out[o.GetUID()] = o.GetResourceVersion()
	}
	for _, r := range v.revisions {
		out[r.UID] = r.ResourceVersion
	}
	return out
}

// put sets a child as it is now; nil: it is gone.
func (v *view) put(child plan.Child, o *unstructured.Unstructured) {
	if o == nil {
		delete(v.children, child)
		return
	}
	v.children[child] = o
}

// isOurs says whether this very AdvDeployment controls the object.
func (v *view) isOurs(o metav1.Object) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.UID == v.deployment.UID
}

// cached is the view from the caches. Names that are known to be taken by others are read
// live: the caches have only objects with our label.
func (c *Controller) cached(ctx context.Context, d *v1beta1.AdvDeployment, known *object) (*view, error) {
	v := newView(d)
	for _, kind := range plan.Kinds() {
		objects, err := c.children[kind].GetTypedIndexer().ByTypedIndex(byOwner, d.Namespace+"/"+d.Name)
		if err != nil {
			return nil, fmt.Errorf("reading the cache of %ss: %w", kind, err)
		}
		for _, o := range objects {
			v.children[plan.Child{Kind: kind, Name: o.GetName()}] = o
		}
	}
	for _, child := range plan.Children(d) {
		if v.children[child] == nil {
			if stored, exists, _ := c.children[child.Kind].GetStore().GetByKey(d.Namespace + "/" + child.Name); exists {
				v.children[child] = stored.(*unstructured.Unstructured)
			} else if known.foreign[child] {
				if err := c.look(ctx, v, child); err != nil {
					return nil, err
				}
			}
		}
		c.scales(v, child)
	}
	return v, c.remember(v)
}

// scales notes whether a child has an autoscaler.
func (c *Controller) scales(v *view, child plan.Child) {
	if c.isScaled(child.Kind.GroupKind(), v.deployment.Namespace, child.Name) {
		v.autoscaled[child] = true
	}
}

// live view of an AdvDeployment; nil if it does not exist any more.
func (c *Controller) live(ctx context.Context, d *v1beta1.AdvDeployment) (*view, error) {
	now, err := c.AdvDeployments.AdvDeployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && now.UID != d.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the AdvDeployment live: %w", err)
	}
	v := newView(now)
	v.isLive = true
	for _, kind := range plan.Kinds() {
		list, err := c.client(kind, d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelAdvDeployment + "=" + d.Name})
		if err != nil {
			return nil, fmt.Errorf("listing %ss live: %w", kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			markReplicas(o)
			v.children[plan.Child{Kind: kind, Name: o.GetName()}] = o
		}
	}
	for _, child := range plan.Children(now) {
		if v.children[child] == nil {
			if err := c.look(ctx, v, child); err != nil {
				return nil, err
			}
		}
		c.scales(v, child)
	}
	return v, c.rememberLive(ctx, v)
}

// look reads live what has a child's name.
func (c *Controller) look(ctx context.Context, v *view, child plan.Child) error {
	o, err := c.client(child.Kind, v.deployment.Namespace).Get(ctx, child.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		v.put(child, nil)
	case err != nil:
		return fmt.Errorf("reading %s live: %w", child, err)
	default:
		markReplicas(o)
		v.put(child, o)
	}
	return nil
}

func (c *Controller) client(kind plan.Kind, namespace string) dynamic.ResourceInterface {
	return c.Children.Resource(resources[kind]).Namespace(namespace)
}
