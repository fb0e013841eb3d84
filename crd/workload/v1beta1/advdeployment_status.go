package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AdvDeploymentStatus is the observed state of an AdvDeployment.
type AdvDeploymentStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastUpdateTime is when the status changed last, by the controller's clock.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`

	// conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// currentRevision is the hash of the content that all podSets have, and
	// updateRevision of the one that they are to have.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount is not used. Original objects have it.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// rollout is how far the current change has come, where no AppSet made the
	// AdvDeployment. Its podSets are units of one cluster.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// aggrStatus are the sums over all podSets.
	// +optional
	AggrStatus AdvDeploymentAggregate `json:"aggrStatus,omitempty,omitzero"`
}

// AdvDeploymentAggregate are the sums over all podSets.
type AdvDeploymentAggregate struct {
	// ownerResource are the objects that were made of the podSets.
	// +optional
	// +listType=set
	OwnerResource []string `json:"ownerResource,omitempty"`

	// status in one word.
	// +optional
	Status Phase `json:"status,omitempty"`

	// version are the versions that run, sorted and joined by "/".
	// +optional
	Version string `json:"version,omitempty"`

	// desired, available and unAvailable instances.
	Desired     int32 `json:"desired"`
	Available   int32 `json:"available"`
	UnAvailable int32 `json:"unAvailable"`

	// podSets one by one.
	// +optional
	// +listType=map
	// +listMapKey=name
	PodSets []PodSetStatus `json:"podSets,omitempty"`
}
