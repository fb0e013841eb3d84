package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PodSpec says what runs.
type PodSpec struct {
	// deployType is the kind of object that a podSet becomes: helm (a release),
	// InPlaceSet (a TApp; tapp is another name), StatefulSet or deployment, in any case.
	// Absent means helm where there is a chart, otherwise deployment.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() in ['helm', 'inplaceset', 'tapp', 'statefulset', 'deployment']",message="must be helm, InPlaceSet, StatefulSet or deployment"
	DeployType string `json:"deployType,omitempty"`

	// selector of the pods. Absent: the labels app and release.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// template of the pods, for all types but helm.
	// +optional
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`

	// volumeClaimTemplates of the pods, for InPlaceSet and StatefulSet.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// chart that is installed, for helm.
	// +optional
	Chart *ChartSpec `json:"chart,omitempty"`

	// rawValues of the chart, as YAML. Those of a podSet are merged over them.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	RawValues string `json:"rawValues,omitempty"`
}

// ChartSpec says where a chart is.
//
// +kubebuilder:validation:XValidation:rule="has(self.rawChart) || has(self.chartUrl)",message="give rawChart or chartUrl"
type ChartSpec struct {
	// rawChart is a chart's archive, in base64. It wins over chartUrl.
	// +optional
	// +kubebuilder:validation:MaxLength=1048576
	RawChart []byte `json:"rawChart,omitempty"`

	// chartUrl names a chart in a repository.
	// +optional
	ChartURL *ChartURL `json:"chartUrl,omitempty"`
}

// ChartURL names a chart in a repository.
type ChartURL struct {
	// url is alias/name with the alias of a repository, a full https URL, or an OCI
	// reference, as in oci://host/charts/name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`

	// chartVersion is the version of the chart.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ChartVersion string `json:"chartVersion,omitempty"`
}

// PodSet is a group of instances in one cluster. It becomes one object.
type PodSet struct {
	PodSetSpec `json:",inline"`

	// chart in place of podSpec.chart, for helm.
	// +optional
	Chart *ChartSpec `json:"chart,omitempty"`
}

// PodSetSpec is what a podSet of an AppSet and of an AdvDeployment has.
type PodSetSpec struct {
	// name of the podSet and of the object that it becomes.
	// +required
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// nodeSelectorTerm is required of the nodes of the pods.
	// +optional
	NodeSelectorTerm *corev1.NodeSelectorTerm `json:"nodeSelectorTerm,omitempty"`

	// replicas is a number, or a percentage of spec.replicas. Absent: an even share of
	// what the other podSets leave of spec.replicas.
	// +optional
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`

	// image of the main container, which is the one that the annotation
	// kubectl.kubernetes.io/default-container names, the one named as the application,
	// or the first.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// version is a label of the pods, and the tag of the main container's image where
	// neither image nor the template has one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	Version string `json:"version,omitempty"`

	// rawValues of the chart, as YAML, merged over podSpec.rawValues.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	RawValues string `json:"rawValues,omitempty"`

	// meta is metadata of the object and its pods.
	// +optional
	Meta map[string]string `json:"meta,omitempty"`

	// ordinals are the ids of the instances, for InPlaceSet and StatefulSet.
	// +optional
	Ordinals *Ordinals `json:"ordinals,omitempty"`
}

// Ordinals are the ids of the instances of a podSet, as in a StatefulSet (KEP-3335).
type Ordinals struct {
	// start is the first id.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Start int32 `json:"start,omitempty"`
}
