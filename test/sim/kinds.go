package sim

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// namespace that all of it happens in.
const namespace = "shop"

// Resources of the API server.
const (
	pods      = "pods"
	claims    = "persistentvolumeclaims"
	revisions = "controllerrevisions"
	tapps     = "tapps"
	nodes     = "nodes"
	events    = "events"
)

// object of the API. What the store holds is never changed: writes make copies.
type object interface {
	metav1.Object
	runtime.Object
}

// kind is what the API server knows of a resource.
type kind struct {
	gvk     schema.GroupVersionKind
	newOne  func() object
	newList func() runtime.Object
	// cluster is true for what is in no namespace.
	cluster bool
}

func kinds() map[string]kind {
	core := func(name string, one func() object, list func() runtime.Object) kind {
		return kind{gvk: corev1.SchemeGroupVersion.WithKind(name), newOne: one, newList: list}
	}
	out := map[string]kind{
		pods: core("Pod", func() object { return &corev1.Pod{} }, func() runtime.Object { return &corev1.PodList{} }),
		claims: core("PersistentVolumeClaim", func() object { return &corev1.PersistentVolumeClaim{} },
			func() runtime.Object { return &corev1.PersistentVolumeClaimList{} }),
		events: core("Event", func() object { return &corev1.Event{} }, func() runtime.Object { return &corev1.EventList{} }),
		revisions: {gvk: appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), newOne: func() object { return &appsv1.ControllerRevision{} },
			newList: func() runtime.Object { return &appsv1.ControllerRevisionList{} }},
		tapps: {gvk: tappv1.GroupVersionKind(), newOne: func() object { return &tappv1.TApp{} },
			newList: func() runtime.Object { return &tappv1.TAppList{} }},
	}
	node := core("Node", func() object { return &corev1.Node{} }, func() runtime.Object { return &corev1.NodeList{} })
	node.cluster = true
	out[nodes] = node
	return out
}

// clone is a copy that may be written to.
func clone[T object](o T) T { return o.DeepCopyObject().(T) }

// name of an object for people: "pods/web-0(u7)".
func nameOf(resource string, o object) string {
	if o == nil {
		return resource
	}
	return fmt.Sprintf("%s/%s(%s)", resource, o.GetName(), o.GetUID())
}

// controllerOf an object: its UID, or none.
func controllerOf(o object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.UID
	}
	return ""
}
