// Package v1 is the API group apps.tkestack.io/v1: the kind TApp, its defaults
// and the names of labels and annotations that pods of a TApp carry.
//
// +kubebuilder:object:generate=true
// +groupName=apps.tkestack.io
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
	s.AddKnownTypes(SchemeGroupVersion, &TApp{}, &TAppList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}

// GroupVersionKind of the kind TApp.
func GroupVersionKind() schema.GroupVersionKind { return SchemeGroupVersion.WithKind(Kind) }

// Resource is the resource of the kind TApp.
func Resource() schema.GroupVersionResource { return SchemeGroupVersion.WithResource("tapps") }
