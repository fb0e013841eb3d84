package app

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// Resources of the API server.
const (
	apps        = "apps"
	deployments = apiserver.Deployments
	services    = "services"
	namespace   = "shop"
)

type object = apiserver.Object

// fields of the children are owned by managers.
type fields struct{ deployments, services *apiserver.Fields }

func newFields() (f fields, err error) {
	if f.deployments, err = apiserver.FieldsOfKind(appsv1.SchemeGroupVersion.WithKind("Deployment")); err != nil {
		return f, err
	}
	f.services, err = apiserver.FieldsOfKind(corev1.SchemeGroupVersion.WithKind("Service"))
	return f, err
}

func kinds(f fields) map[string]apiserver.Kind {
	app := apiserver.Custom(appv1.SchemeGroupVersion.WithKind(appv1.Kind), func() object { return &appv1.App{} }, func() runtime.Object { return &appv1.AppList{} })
	deployment := apiserver.Custom(appsv1.SchemeGroupVersion.WithKind("Deployment"), func() object { return &appsv1.Deployment{} }, func() runtime.Object { return &appsv1.DeploymentList{} })
	service := apiserver.Custom(corev1.SchemeGroupVersion.WithKind("Service"), func() object { return &corev1.Service{} }, func() runtime.Object { return &corev1.ServiceList{} })
	deployment.Fields, service.Fields = f.deployments, f.services
	for _, k := range []*apiserver.Kind{&deployment, &service} {
		k.Custom, k.Tracked = false, true
	}
	spec := deployment.Restrict
	deployment.Restrict = func(s *apiserver.Server, sub string, now, old object) error {
		if !equality.Semantic.DeepEqual(now.(*appsv1.Deployment).Spec.Selector, old.(*appsv1.Deployment).Spec.Selector) {
			return s.Invalid(deployments, now.GetName(), "spec.selector", "field is immutable")
		}
		return spec(s, sub, now, old)
	}
	ports := service.Restrict
	service.Restrict = func(s *apiserver.Server, sub string, now, old object) error {
		names := map[string]bool{}
		for _, p := range now.(*corev1.Service).Spec.Ports {
			if names[p.Name] {
				return s.Invalid(services, now.GetName(), "spec.ports", fmt.Sprintf("Duplicate value: %q", p.Name))
			}
			names[p.Name] = true
		}
		return ports(s, sub, now, old)
	}
	out := apiserver.Core()
	out[apps], out[deployments], out[services] = app, deployment, service
	return out
}

// errand is what the rest of the cluster has to do: Deployments that roll out, and the
// garbage collector. nil: nothing.
func (w *world) errand() func() {
	if do := w.RollOut(); do != nil {
		return do
	}
	for _, resource := range []string{deployments, services} {
		for _, key := range w.Tables[resource].Keys() {
			o := w.Tables[resource].Objects[key]
			if dead := w.deadOwner(o); dead != nil {
				return func() { w.collect(resource, o, dead) }
			}
		}
	}
	for _, a := range apiserver.All[*appv1.App](w.Store, apps) {
		if slices.Contains(a.Finalizers, apiserver.Orphan) {
			return func() { w.orphan(a) }
		}
	}
	return nil
}

// deadOwner of an object; nil: it has none, or that lives.
func (w *world) deadOwner(o object) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(o)
	if ref == nil || ref.Kind != appv1.Kind {
		return nil
	}
	if a, ok := apiserver.Find[*appv1.App](w.Store, apps, namespace+"/"+ref.Name); ok && a.UID == ref.UID {
		return nil
	}
	return ref
}

func (w *world) collect(resource string, o object, _ *metav1.OwnerReference) {
	uid := o.GetUID()
	_, _ = w.Remove(resource, apiserver.Key(o), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}, w.as("gc"))
}

// orphan sets the children of an App free, and lets it go.
func (w *world) orphan(a *appv1.App) {
	for _, resource := range []string{deployments, services} {
		for _, key := range w.Tables[resource].Keys() {
			if apiserver.ControllerOf(w.Tables[resource].Objects[key]) == a.UID {
				_, _ = w.Update(resource, key, "", w.as("gc"), func(o object) error { o.SetOwnerReferences(nil); return nil })
				return
			}
		}
	}
	_, _ = w.Update(apps, apiserver.Key(a), "", w.as("gc"), func(o object) error { o.SetFinalizers(nil); return nil })
}
