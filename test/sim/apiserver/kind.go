package apiserver

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object of the API. What the store holds is never changed: writes make copies.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is what the API server knows of a resource. The functions may be nil.
type Kind struct {
	GVK     schema.GroupVersionKind
	New     func() Object
	NewList func() runtime.Object
	// Cluster is true for what is in no namespace.
	Cluster bool
	// Custom is true for resources of a CRD, which speak neither protobuf nor strategic
	// merge patches.
	Custom bool
	// Discard is true for what is taken, and not stored: events.
	Discard bool
	// Prepare completes a new object: defaults, and what only the status may say.
	Prepare func(Object)
	// Restrict puts back what a write to the subresource does not cover, counts
	// generations, and refuses what may not change.
	Restrict func(s *Server, sub string, now, old Object) error
	// Fields are owned by managers, for server-side apply; nil: it is not spoken.
	Fields *Fields
	// Tracked: those who update an object own what they change, too, by the name of the
	// actor. It takes Fields.
	Tracked bool
	// Grace of a deletion in seconds; nil: none.
	Grace func(Object, metav1.DeleteOptions) int64
}

// Custom is the kind of a CRD with the usual fields Spec and Status, and the subresource
// status.
func Custom(gvk schema.GroupVersionKind, one func() Object, list func() runtime.Object) Kind {
	field := func(o Object, name string) reflect.Value { return reflect.ValueOf(o).Elem().FieldByName(name) }
	return Kind{GVK: gvk, New: one, NewList: list, Custom: true,
		Prepare: func(o Object) {
			o.SetGeneration(1)
			if status := field(o, "Status"); status.IsValid() {
				status.SetZero()
			}
		},
		Restrict: func(_ *Server, sub string, now, before Object) error {
			old := Clone(before)
			if sub == "status" {
				status := Clone(now)
				reflect.ValueOf(now).Elem().Set(reflect.ValueOf(old).Elem())
				field(now, "Status").Set(field(status, "Status"))
				return nil
			}
			if status := field(now, "Status"); status.IsValid() {
				status.Set(field(old, "Status"))
			}
			if !equality.Semantic.DeepEqual(field(now, "Spec").Interface(), field(old, "Spec").Interface()) {
				now.SetGeneration(now.GetGeneration() + 1)
			}
			return nil
		},
	}
}

// Clone is a copy that may be written to.
func Clone[T Object](o T) T { return o.DeepCopyObject().(T) }

// Key of an object in its table: its namespace and name.
func Key(o Object) string { return KeyOf(o.GetNamespace(), o.GetName()) }

// KeyOf a namespace, which is empty for what is in none, and a name.
func KeyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// NameOf an object for people: "pods/shop/web-0(u7)".
func NameOf(resource string, o Object) string {
	if o == nil {
		return resource
	}
	return fmt.Sprintf("%s/%s(%s)", resource, Key(o), o.GetUID())
}

// ControllerOf an object: its UID, or none.
func ControllerOf(o Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.UID
	}
	return ""
}
