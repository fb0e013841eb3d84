package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AppSet is one application in many clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=appsets,singular=appset,shortName=as,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.aggrStatus.desired
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.status.aggrStatus.desired`,description="Instances that are to run"
// +kubebuilder:printcolumn:name="AVAILABLE",type=integer,JSONPath=`.status.aggrStatus.available`,description="Available instances in clusters that are heard"
// +kubebuilder:printcolumn:name="UNAVAILABLE",type=integer,JSONPath=`.status.aggrStatus.unAvailable`,description="Desired instances that are not known to be available"
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=`.status.aggrStatus.version`,description="Versions that run"
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.aggrStatus.status`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="ROLLOUT",type=string,priority=1,JSONPath=`.status.rollout.id`
// +kubebuilder:printcolumn:name="STAGE",type=string,priority=1,JSONPath=`.status.rollout.stage`
// +kubebuilder:printcolumn:name="UNKNOWN",type=integer,priority=1,JSONPath=`.status.aggrStatus.unknown`,description="Unavailable instances of which nobody can tell, since their clusters are silent"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 59 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must be a DNS label that begins with a letter and has at most 59 characters: it becomes a label of pods and, with -svc, the name of a Service"
type AppSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +required
	Spec AppSetSpec `json:"spec"`

	// status is what the controller last observed. An observedGeneration of -1 says
	// that it has not looked yet.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status AppSetStatus `json:"status,omitempty"`
}

// AppSetList is a list of AppSets.
//
// +kubebuilder:object:root=true
type AppSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AppSet `json:"items"`
}

// AppSetSpec is the desired state of an AppSet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.updateStrategy) || !has(self.updateStrategy.canaryClusters) || (has(self.clusterTopology) && has(self.clusterTopology.clusters) && self.updateStrategy.canaryClusters.all(c, self.clusterTopology.clusters.exists(t, t.name == c)))",fieldPath=".updateStrategy.canaryClusters",message="a canary cluster is not among clusterTopology.clusters: add it there, or drop it here"
// +kubebuilder:validation:XValidation:rule="(has(self.podSpec) && has(self.podSpec.deployType) ? self.podSpec.deployType.lowerAscii() : has(self.podSpec) && has(self.podSpec.chart) ? 'helm' : 'deployment') == (has(oldSelf.podSpec) && has(oldSelf.podSpec.deployType) ? oldSelf.podSpec.deployType.lowerAscii() : has(oldSelf.podSpec) && has(oldSelf.podSpec.chart) ? 'helm' : 'deployment')",fieldPath=".podSpec.deployType",message="deployType is immutable: the objects of one type would be abandoned for those of another. Create another AppSet to change it"
type AppSetSpec struct {
	// labels of all children and pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// meta is metadata of all children and pods. What is no label value becomes an
	// annotation.
	// +optional
	Meta map[string]string `json:"meta,omitempty"`

	// replicas is the number of instances in all clusters. PodSets with a percentage
	// get that share of it, and podSets without replicas share what is left. It is not
	// needed where all podSets have numbers; those win.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// serviceName is the name of the application's Service. With dots it is a domain,
	// and the Service is headless and named after the AppSet, with -svc.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceName string `json:"serviceName,omitempty"`

	// podSpec says what runs.
	// +optional
	PodSpec PodSpec `json:"podSpec,omitempty,omitzero"`

	// updateStrategy says how a change gets to the clusters.
	// +optional
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty,omitzero"`

	// clusterTopology says where the application runs.
	// +optional
	ClusterTopology ClusterTopology `json:"clusterTopology,omitempty,omitzero"`

	// revisionHistoryLimit is the number of old revisions that are kept. Absent means
	// 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// progressDeadlineSeconds is the time without progress after which a podSet of one
	// cluster has failed to get to a change. Absent means 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// deletionPolicy says what becomes of the workloads when the AppSet is deleted:
	// they are deleted (Delete, which absent means), or stay (Orphan).
	// +optional
	// +kubebuilder:validation:Enum=Delete;Orphan
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DeletionPolicy says what becomes of the workloads of an AppSet that is deleted.
type DeletionPolicy string

// Deletion policies.
const (
	DeletionDelete DeletionPolicy = "Delete"
	DeletionOrphan DeletionPolicy = "Orphan"
)

// ClusterTopology says where an application runs.
type ClusterTopology struct {
	// clusters that the application runs in.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// TargetCluster is what runs in one cluster.
type TargetCluster struct {
	// name under which the cluster is registered. Case does not matter, and "_" is "-".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// meta is metadata of the children and pods in this cluster.
	// +optional
	Meta map[string]string `json:"meta,omitempty"`

	// podSets are groups of instances. Each becomes one object.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PodSets []PodSet `json:"podSets,omitempty"`
}

// UpdateStrategy says how a change gets to the instances: in which order, with which
// gates, and within which budget.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.stages) && has(self.upgradeType))",fieldPath=".stages",message="stages replaces upgradeType: give one of them"
type UpdateStrategy struct {
	// upgradeType is the order of groups: canary, blue, green, or several of them, as
	// in canary|blue|green. PodSets in none of these groups come last.
	// +optional
	// +kubebuilder:validation:MaxLength=17
	// +kubebuilder:validation:XValidation:rule="self == '' || self.split('|').all(g, g in ['canary', 'blue', 'green'] && self.split('|').filter(h, h == g).size() == 1)",message="must be canary, blue, green, or several of them in the order of the rollout, as in canary|blue|green"
	UpgradeType string `json:"upgradeType,omitempty"`

	// minReadySeconds is how long a pod has to be ready before it counts as available.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// canaryClusters are the clusters that come first.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	CanaryClusters []string `json:"canaryClusters,omitempty"`

	// needWaitingForConfirm has the rollout wait for a Confirmation after every stage
	// but the last.
	// +optional
	NeedWaitingForConfirm bool `json:"needWaitingForConfirm,omitempty"`

	// paused holds changes of running pods. Scaling, creation and repair go on.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// stages of a rollout, in place of upgradeType. What is in none of them comes last.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Stages []Stage `json:"stages,omitempty"`

	// maxConcurrentClusters is how many clusters of a stage change at once: a number,
	// or a percentage of the stage's clusters, rounded up. Absent means 1.
	// +optional
	MaxConcurrentClusters *intstr.IntOrString `json:"maxConcurrentClusters,omitempty"`

	// maxUnavailable is the budget of all clusters together: how many desired instances
	// may be unavailable, as a number or a percentage of all, rounded up. Absent: each
	// object has its kind's own default.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxFailures is how many clusters of a stage may fail before the rollout halts: a
	// number, or a percentage, rounded down. Absent means 0.
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// soakSeconds is how long a stage that is done must stay well before the next one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SoakSeconds int32 `json:"soakSeconds,omitempty"`

	// onFailure says what a rollout does that fails: it stops (Halt, which absent
	// means), or returns to what ran before (Rollback).
	// +optional
	// +kubebuilder:validation:Enum=Halt;Rollback
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// unreachableCounts says how instances of silent clusters count in maxUnavailable:
	// as unavailable (Unavailable, which absent means), or as they were seen last
	// (AsLastSeen).
	// +optional
	// +kubebuilder:validation:Enum=Unavailable;AsLastSeen
	UnreachableCounts UnreachablePolicy `json:"unreachableCounts,omitempty"`
}

// FailurePolicy says what a rollout does that fails.
type FailurePolicy string

// Failure policies.
const (
	FailureHalt     FailurePolicy = "Halt"
	FailureRollback FailurePolicy = "Rollback"
)

// UnreachablePolicy says how instances of silent clusters count in the budget.
type UnreachablePolicy string

// Policies for silent clusters.
const (
	UnreachableUnavailable UnreachablePolicy = "Unavailable"
	UnreachableAsLastSeen  UnreachablePolicy = "AsLastSeen"
)

// Stage of a rollout: the podSets that are in one of its clusters and in one of its
// groups. What is absent selects all.
type Stage struct {
	// name of the stage.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// clusters by name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	Clusters []string `json:"clusters,omitempty"`

	// clusterSelector selects clusters by their metadata, which is that of their
	// registration with clusterTopology.clusters[].meta above it.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// groups of podSets, such as canary.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Groups []string `json:"groups,omitempty"`

	// confirm says whether the rollout waits for a Confirmation after this stage.
	// Absent: as needWaitingForConfirm says.
	// +optional
	Confirm *bool `json:"confirm,omitempty"`

	// soakSeconds of this stage. Absent: that of updateStrategy.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SoakSeconds *int32 `json:"soakSeconds,omitempty"`

	// maxConcurrentClusters of this stage. Absent: that of updateStrategy.
	// +optional
	MaxConcurrentClusters *intstr.IntOrString `json:"maxConcurrentClusters,omitempty"`
}
