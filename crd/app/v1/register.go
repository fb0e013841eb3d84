// Package v1 is the API group appcontroller.k8s.io/v1: the kind App, its defaults
// and the names that its children carry.
//
// +kubebuilder:object:generate=true
// +groupName=appcontroller.k8s.io
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &App{}, &AppList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}

// GroupVersionKind of the kind App.
func GroupVersionKind() schema.GroupVersionKind { return SchemeGroupVersion.WithKind(Kind) }

// Resource is the resource of the kind App.
func Resource() schema.GroupVersionResource { return SchemeGroupVersion.WithResource("apps") }
