package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appv1 "tkestack.io/tapp/crd/app/v1"
	plan "tkestack.io/tapp/plan/app"
)

// view is what the planner sees of one App. Its objects are shared with the
// caches: nobody may write to them.
type view struct {
	app         *appv1.App
	deployments map[string]*appsv1.Deployment
	services    map[string]*corev1.Service
	// refused says why the API server did not take a child, in this sync.
	refused map[plan.Child]string
	// corrected are the children that were corrected in this sync, which is tried once.
	corrected map[plan.Child]bool
}

func (v *view) input(o *object, now time.Time) plan.Input {
	return plan.Input{
		App: v.app, Deployments: slices.Collect(maps.Values(v.deployments)), Services: slices.Collect(maps.Values(v.services)),
		Overruled: o.overruled, Refused: v.refused, Now: now,
	}
}

// Versions of all that the view shows.
func (v *view) Versions() map[types.UID]string {
	out := map[types.UID]string{v.app.UID: v.app.ResourceVersion}
	for _, d := range v.deployments {
		out[d.UID] = d.ResourceVersion
	}
	for _, s := range v.services {
		out[s.UID] = s.ResourceVersion
	}
	return out
}

// put shows a child as it is now; nil: it is gone.
func (v *view) put(child plan.Child, o metav1.Object) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		v.deployments[child.Name] = o
	case *corev1.Service:
		v.services[child.Name] = o
	case nil:
		if child.Kind == plan.Deployment {
			delete(v.deployments, child.Name)
		} else {
			delete(v.services, child.Name)
		}
	}
}

func newView(a *appv1.App) *view {
	return &view{app: a, deployments: map[string]*appsv1.Deployment{}, services: map[string]*corev1.Service{}, refused: map[plan.Child]string{}, corrected: map[plan.Child]bool{}}
}

// cached view of an App. Names that are known to be somebody else's are read live:
// the caches have only what carries our label.
func (c *Controller) cached(ctx context.Context, a *appv1.App, known *object) (*view, error) {
	v := newView(a)
	deployments, err := c.deployments.GetTypedIndexer().ByTypedIndex(byApp, a.Namespace+"/"+a.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the cache of Deployments: %w", err)
	}
	for _, d := range deployments {
		v.deployments[d.Name] = d
	}
	services, err := c.services.GetTypedIndexer().ByTypedIndex(byApp, a.Namespace+"/"+a.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the cache of Services: %w", err)
	}
	for _, s := range services {
		v.services[s.Name] = s
	}
	for _, child := range children(a) {
		if v.get(child) != nil {
			continue
		}
		key := a.Namespace + "/" + child.Name
		switch {
		case known.foreign[child]:
			if err := c.look(ctx, v, child); err != nil {
				return nil, err
			}
		case child.Kind == plan.Deployment:
			if o, exists, _ := c.deployments.GetStore().GetByKey(key); exists {
				v.deployments[child.Name] = o.(*appsv1.Deployment)
			}
		default:
			if o, exists, _ := c.services.GetStore().GetByKey(key); exists {
				v.services[child.Name] = o.(*corev1.Service)
			}
		}
	}
	return v, nil
}

// get returns what has a child's name; nil: nothing has.
func (v *view) get(child plan.Child) metav1.Object {
	if d := v.deployments[child.Name]; child.Kind == plan.Deployment && d != nil {
		return d
	}
	if s := v.services[child.Name]; child.Kind == plan.Service && s != nil {
		return s
	}
	return nil
}

// isOurs says whether this very App controls the object.
func isOurs(o metav1.Object, a *appv1.App) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.UID == a.UID
}

// live view of an App; nil if it does not exist any more.
func (c *Controller) live(ctx context.Context, a *appv1.App) (*view, error) {
	now, err := c.Apps.Apps(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && now.UID != a.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the App live: %w", err)
	}
	v := newView(now)
	labelled := metav1.ListOptions{LabelSelector: appv1.LabelApp + "=" + a.Name}
	deployments, err := c.Deployments.Deployments(a.Namespace).List(ctx, labelled)
	if err != nil {
		return nil, fmt.Errorf("listing Deployments live: %w", err)
	}
	for i := range deployments.Items {
		v.deployments[deployments.Items[i].Name] = &deployments.Items[i]
	}
	services, err := c.Services.Services(a.Namespace).List(ctx, labelled)
	if err != nil {
		return nil, fmt.Errorf("listing Services live: %w", err)
	}
	for i := range services.Items {
		v.services[services.Items[i].Name] = &services.Items[i]
	}
	for _, child := range children(now) {
		if v.get(child) == nil {
			if err := c.look(ctx, v, child); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// look reads live what has a child's name.
func (c *Controller) look(ctx context.Context, v *view, child plan.Child) error {
	o, err := c.access(child.Kind).get(ctx, v.app.Namespace, child.Name)
	switch {
	case apierrors.IsNotFound(err):
		v.put(child, nil)
	case err != nil:
		return fmt.Errorf("reading %s live: %w", child, err)
	default:
		v.put(child, o)
	}
	return nil
}
