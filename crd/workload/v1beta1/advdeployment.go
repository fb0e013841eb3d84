package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AdvDeployment is what runs of an application in one cluster: the part of an AppSet,
// or written by a user.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=advdeployments,singular=advdeployment,shortName=ad,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.status.aggrStatus.desired`,description="Instances that are to run"
// +kubebuilder:printcolumn:name="AVAILABLE",type=integer,JSONPath=`.status.aggrStatus.available`
// +kubebuilder:printcolumn:name="UNAVAILABLE",type=integer,JSONPath=`.status.aggrStatus.unAvailable`
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=`.status.aggrStatus.version`,description="Versions that run"
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.aggrStatus.status`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 59 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must be a DNS label that begins with a letter and has at most 59 characters: it becomes a label of pods and, with -svc, the name of a Service"
type AdvDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for.
	// +required
	Spec AdvDeploymentSpec `json:"spec"`

	// status is what the controller last observed. An observedGeneration of -1 says
	// that it has not looked yet.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status AdvDeploymentStatus `json:"status,omitempty"`
}

// AdvDeploymentList is a list of AdvDeployments.
//
// +kubebuilder:object:root=true
type AdvDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AdvDeployment `json:"items"`
}

// AdvDeploymentSpec is the desired state of an AdvDeployment.
//
// +kubebuilder:validation:XValidation:rule="(has(self.podSpec) && has(self.podSpec.deployType) ? self.podSpec.deployType.lowerAscii() : has(self.podSpec) && has(self.podSpec.chart) ? 'helm' : 'deployment') == (has(oldSelf.podSpec) && has(oldSelf.podSpec.deployType) ? oldSelf.podSpec.deployType.lowerAscii() : has(oldSelf.podSpec) && has(oldSelf.podSpec.chart) ? 'helm' : 'deployment')",fieldPath=".podSpec.deployType",message="deployType is immutable: the objects of one type would be abandoned for those of another. Create another AdvDeployment to change it"
type AdvDeploymentSpec struct {
	// labels of all children and pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// replicas is the number of instances, as in an AppSet.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// serviceName is the name of the application's Service, as in an AppSet.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceName string `json:"serviceName,omitempty"`

	// podSpec says what runs.
	// +optional
	PodSpec PodSpec `json:"podSpec,omitempty,omitzero"`

	// revisions are the contents of podSets that are held back, or change: those that name
	// one.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Revisions []Revision `json:"revisions,omitempty"`

	// updateStrategy says how a change gets to the podSets.
	// +optional
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty,omitzero"`

	// topology lists the podSets.
	// +optional
	Topology Topology `json:"topology,omitempty,omitzero"`

	// revisionHistoryLimit is the number of old revisions that are kept. Absent means
	// 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// progressDeadlineSeconds is the time without progress after which a podSet has
	// failed to get to a change. Absent means 600. The part of an AppSet goes by that of
	// the AppSet.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// Revision is a content of podSets.
type Revision struct {
	// name by which podSets refer to the revision.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// content is everything of a podSet that reaches its pods.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Content runtime.RawExtension `json:"content"`
}

// Topology lists the podSets of one cluster.
type Topology struct {
	// podSets are groups of instances. Each becomes one object.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PodSets []PlacedPodSet `json:"podSets,omitempty"`
}

// PlacedPodSet is a podSet with what the controller of its AppSet decided about it.
type PlacedPodSet struct {
	PodSetSpec `json:",inline"`

	// chart in place of podSpec.chart, for helm.
	// +optional
	Chart *PlacedChart `json:"chart,omitempty"`

	// revision that the podSet is held back at: the name of one of spec.revisions.
	// Absent: it is as podSpec says.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision,omitempty"`

	// from is the content that the instances have which have not begun to change: the name
	// of one of spec.revisions. An instance of an InPlaceSet keeps it, also when its pod is
	// made anew, until maxUnavailable has room for it to change. Absent: all may change.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	From string `json:"from,omitempty"`

	// paused holds changes of running pods.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// maxUnavailable is how many instances the podSet may have out of service for a
	// change. Absent: the default of its kind.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`

	// ceiling is the highest maxUnavailable that may still be in force: a lower one
	// counts only once it was observed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ceiling *int32 `json:"ceiling,omitempty"`
}

// PlacedChart says where the bytes of a chart are.
//
// +kubebuilder:validation:XValidation:rule="has(self.rawChart) || has(self.chartUrl) || has(self.secretRef)",message="give rawChart, chartUrl or secretRef"
type PlacedChart struct {
	// rawChart is a chart's archive, in base64. It wins over chartUrl.
	// +optional
	// +kubebuilder:validation:MaxLength=1048576
	RawChart []byte `json:"rawChart,omitempty"`

	// chartUrl names a chart in a repository.
	// +optional
	ChartURL *ChartURL `json:"chartUrl,omitempty"`

	// secretRef names the immutable Secret with the archive that an AppSet's
	// controller resolved. It wins over the others.
	// +optional
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`
}
