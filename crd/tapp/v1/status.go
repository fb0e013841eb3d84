package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InstanceStatus is the state of one instance. In spec.statuses only Killed and
// Running have an effect.
//
// +kubebuilder:validation:Enum=NotCreated;Pending;Running;Updating;PodFailed;PodSucc;Killing;Killed;Failed;Succ;Unknown
type InstanceStatus string

const (
	// InstanceNotCreated means that the instance is to run and has no pod yet.
	InstanceNotCreated InstanceStatus = "NotCreated"
	// InstancePending means that the pod is not ready yet.
	InstancePending InstanceStatus = "Pending"
	// InstanceRunning means that the pod is ready.
	InstanceRunning InstanceStatus = "Running"
	// InstanceUpdating means that the pod is being changed in place.
	InstanceUpdating InstanceStatus = "Updating"
	// InstancePodFailed means that the pod failed, and another one will take its place.
	InstancePodFailed InstanceStatus = "PodFailed"
	// InstancePodSucc means that the pod ended well, and another one will take its place.
	InstancePodSucc InstanceStatus = "PodSucc"
	// InstanceKilling means that the pod is being deleted.
	InstanceKilling InstanceStatus = "Killing"
	// InstanceKilled means that spec.statuses stopped the instance, and its pod is gone.
	InstanceKilled InstanceStatus = "Killed"
	// InstanceFailed means that the pod failed, and the instance stays as it ended.
	InstanceFailed InstanceStatus = "Failed"
	// InstanceSucc means that the pod ended well, and the instance stays as it ended.
	InstanceSucc InstanceStatus = "Succ"
	// InstanceUnknown means that the pod's phase cannot be told.
	InstanceUnknown InstanceStatus = "Unknown"
)

// AppStatus is the state of a TApp as a whole.
type AppStatus string

const (
	// AppPending means that there is no instance.
	AppPending AppStatus = "Pending"
	// AppRunning means that at least one instance has not ended.
	AppRunning AppStatus = "Running"
	// AppFailed means that all instances ended, and at least one failed.
	AppFailed AppStatus = "Failed"
	// AppSucc means that all instances ended, none failed, and at least one ended well.
	AppSucc AppStatus = "Succ"
	// AppKilled means that all instances are stopped.
	AppKilled AppStatus = "Killed"
)

// Condition types of a TApp. They follow kstatus: a generation is rolled out
// when observedGeneration has caught up, Ready is True and Stalled is not.
const (
	// ConditionReady is True when every instance that is to run is available and
	// follows its current template, and none is left over. The message counts instances
	// that completed.
	ConditionReady = "Ready"
	// ConditionProgressing is True while instances are on their way to the spec.
	ConditionProgressing = "Progressing"
	// ConditionStalled is True when the controller cannot go on without help: the
	// spec is invalid, instances wait for lost nodes, or nothing moved for
	// progressDeadlineSeconds.
	ConditionStalled = "Stalled"
	// ConditionForceDeleted is True while pods are deleted by force because their
	// nodes are lost, and until the TApp has settled after that; the message is the
	// evidence, and stays. It is there only once it has been True.
	ConditionForceDeleted = "ForceDeleted"
	// ConditionClaimsGrowing is True while claims have not the size of their template
	// yet, which is when that may be taken back. It is there only once it has been True.
	ConditionClaimsGrowing = "ClaimsGrowing"
	// ConditionInitImagesBehind is True while init containers of instances ran an earlier
	// image than their pod's spec names, which an update in place brought; the message
	// names them. It is there only once it has been True.
	ConditionInitImagesBehind = "InitImagesBehind"
	// ConditionClaimTerminating is True while claims of instances are being deleted that
	// their pods mount, by others than the TApp's retention policy. They go with their pods.
	// The message names them and their volumes. It is there only once it has been True.
	ConditionClaimTerminating = "ClaimTerminating"
	// ConditionReplicaFailure is True while the API server refuses what is done for
	// instances, such as for a quota or by a policy: to create (reason FailedCreate), to
	// delete (FailedDelete) or to patch (FailedUpdate) a pod or a claim. The message names
	// an instance, and has the API server's words. It is there only once it has been True.
	ConditionReplicaFailure = "ReplicaFailure"
)

// TAppStatus is the observed state of a TApp.
type TAppStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods that exist and have not finished.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of instances that are to run and whose pod
	// has been ready for minReadySeconds, is not being deleted and not being
	// updated.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas is the number of pods that follow the current template of
	// their instance.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// completedReplicas is the number of instances that ended and stay as they ended,
	// which the restartPolicy OnFailure or Never lets them. They are none of those that
	// are to run.
	// +optional
	CompletedReplicas int32 `json:"completedReplicas,omitempty"`

	// scaleLabelSelector is the selector in its string form, for the scale
	// subresource and with it the HorizontalPodAutoscaler.
	// +optional
	ScaleLabelSelector string `json:"scaleLabelSelector,omitempty"`

	// appStatus is the state of the TApp as a whole: Pending, Running, Failed,
	// Succ or Killed.
	// +optional
	AppStatus AppStatus `json:"appStatus,omitempty"`

	// statuses is the state of every instance: instance id to status.
	// +mapType=atomic
	// +optional
	Statuses map[string]InstanceStatus `json:"statuses,omitempty"`

	// nodes is where the instances of a TApp with neverMigrate have run: instance
	// id to node name.
	// +mapType=atomic
	// +optional
	Nodes map[string]string `json:"nodes,omitempty"`

	// failures is how many pods of an instance failed in a row: instance id to number.
	// It has those whose last pod ended, is being deleted or is gone, until there is the
	// next one, whose delay grows with it. Pods that run tell themselves.
	// +mapType=atomic
	// +optional
	Failures map[string]int32 `json:"failures,omitempty"`

	// contents is which template each instance has or, where it has no pod, had last:
	// template hash to ranges of instance ids, such as "0-3,7". It is there only while
	// instances have another template than their present one, and holds at most 32 KiB.
	// A pod that is lost while its update is held comes back with it. A range that ends in !
	// has instances without a pod that go on to their present template unless the TApp is
	// paused: their last pod failed by itself, or they were started again.
	// +mapType=atomic
	// +optional
	Contents map[string]string `json:"contents,omitempty"`

	// currentRevision is the revision of the spec that was last rolled out.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the revision of the spec that is being rolled out.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount counts hash collisions of revision names.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// lastProgressTime is when an instance last came closer to the spec.
	// progressDeadlineSeconds counts from it.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`

	// conditions are Ready, Progressing and Stalled, and ForceDeleted once a pod was deleted by force,
	// ClaimsGrowing once claims had to grow, InitImagesBehind once an init container's image was changed in place,
	// ReplicaFailure once something was refused, and ClaimTerminating once a claim in use was being deleted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
