package v1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// App runs one container image behind one address: a Deployment and a Service
// that stay as the App says.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group is the one that the kind was published with"
// +kubebuilder:resource:path=apps,singular=app
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.deploymentTemplate.replicas,statuspath=.status.deploymentStatus.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="DEPLOYMENT",type=string,JSONPath=`.spec.deploymentTemplate.name`,description="Name of the Deployment"
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.ready`,description="Ready pods of those asked for"
// +kubebuilder:printcolumn:name="SERVICE",type=string,JSONPath=`.spec.serviceTemplate.name`,description="Name of the Service"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="IMAGE",type=string,priority=1,JSONPath=`.spec.deploymentTemplate.image`,description="Image of the container"
// +kubebuilder:printcolumn:name="SELECTOR",type=string,priority=1,JSONPath=`.status.selector`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name has more than 63 characters, and the label of its pods could not hold it: choose a shorter one"
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +optional
	Spec AppSpec `json:"spec,omitempty"`

	// status is what the controller last observed. An observedGeneration of -1 says
	// that it has not looked yet.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status AppStatus `json:"status,omitempty"`
}

// AppList is a list of Apps.
//
// +kubebuilder:object:root=true
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []App `json:"items"`
}

// AppSpec is the desired state of an App.
type AppSpec struct {
	// deploymentTemplate is the Deployment. Absent or without a name: none is wanted.
	// +optional
	DeploymentTemplate DeploymentTemplate `json:"deploymentTemplate,omitempty,omitzero"`

	// serviceTemplate is the Service. Absent or without a name: none is wanted.
	// +optional
	ServiceTemplate ServiceTemplate `json:"serviceTemplate,omitempty,omitzero"`
}

// DeploymentTemplate is what an App says of its Deployment.
type DeploymentTemplate struct {
	// name of the Deployment. Absent or empty: no Deployment is wanted. A Deployment
	// under the name that it had before is deleted once there is one under the new
	// name.
	// +optional
	Name string `json:"name,omitempty"`

	// image of the container app-deploy-container.
	// +optional
	Image string `json:"image,omitempty"`

	// replicas is the number of pods. Absent means 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// ports that the container listens on. The Service leads to the first one.
	// +optional
	// +listType=atomic
	Ports []corev1.ContainerPort `json:"ports,omitempty"`

	// env are the environment variables of the container.
	// +optional
	// +listType=atomic
	Env []corev1.EnvVar `json:"env,omitempty"`

	// resources of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`
}

// ServiceTemplate is what an App says of its Service.
type ServiceTemplate struct {
	// name of the Service. Absent or empty: no Service is wanted. A Service under the
	// name that it had before is deleted once there is one under the new name.
	// +optional
	Name string `json:"name,omitempty"`

	// port of the Service. It leads to the first of deploymentTemplate.ports, or to
	// the same number where there are none. Absent means 8080.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// type of the Service. Absent means ClusterIP.
	// +optional
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`
}

// Condition types of an App, as kstatus reads them.
const (
	// ConditionReady is True when the children are as the App says, and the
	// Deployment has rolled out.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the children are on their way there.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when that needs help: the name of a child is taken, or
	// the cluster refuses a child, or the Deployment does not get on.
	ConditionStalled = "Stalled"
)

// AppStatus is the observed state of an App.
type AppStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ready tells the ready pods of those asked for, such as 2/3.
	// +optional
	Ready string `json:"ready,omitempty"`

	// selector of the App's pods in its string form, for the scale subresource and
	// with it the HorizontalPodAutoscaler.
	// +optional
	Selector string `json:"selector,omitempty"`

	// deploymentStatus is a copy of the Deployment's status. Absent: the App has no
	// Deployment.
	// +optional
	DeploymentStatus *appsv1.DeploymentStatus `json:"deploymentStatus,omitempty"`

	// serviceStatus is a copy of the Service's status. Absent: the App has no Service.
	// +optional
	ServiceStatus *corev1.ServiceStatus `json:"serviceStatus,omitempty"`

	// conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
