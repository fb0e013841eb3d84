// Package v1beta1 is the API group workload.dmall.com/v1beta1: the kinds of the
// fleet, their defaults and the names that they carry.
//
// An AppSet is one application in many clusters. It becomes one AdvDeployment in each
// of them, which becomes TApps, StatefulSets, Deployments or Helm releases there. A
// Confirmation lets a rollout of an AppSet pass one gate.
//
// +kubebuilder:object:generate=true
// +groupName=workload.dmall.com
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion,
		&AppSet{}, &AppSetList{}, &AdvDeployment{}, &AdvDeploymentList{}, &Confirmation{}, &ConfirmationList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}

// AppSets is the resource of the kind AppSet.
func AppSets() schema.GroupVersionResource { return SchemeGroupVersion.WithResource("appsets") }

// ClusterProfiles is the resource of the inventory of SIG Multicluster. They are read without
// their Go types, which are no part of Kubernetes' own modules.
func ClusterProfiles() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}
}

// AdvDeployments is the resource of the kind AdvDeployment.
func AdvDeployments() schema.GroupVersionResource {
	return SchemeGroupVersion.WithResource("advdeployments")
}

// Confirmations is the resource of the kind Confirmation.
func Confirmations() schema.GroupVersionResource {
	return SchemeGroupVersion.WithResource("confirmations")
}
