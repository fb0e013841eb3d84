package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of AppSets and AdvDeployments. The first three are as kstatus reads
// them.
const (
	// ConditionReady is True when all instances run what the spec asks for.
	ConditionReady = "Ready"
	// ConditionReconciling is True while they are on their way there.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when that needs help.
	ConditionStalled = "Stalled"
	// ConditionClustersReachable is False while a cluster of an AppSet is silent.
	ConditionClustersReachable = "ClustersReachable"
	// ConditionAwaitingConfirmation is True while a gate of an AppSet waits.
	ConditionAwaitingConfirmation = "AwaitingConfirmation"
)

// Phase is the column STATUS, in one word.
type Phase string

// Phases, in the order in which they are judged: the first that holds is told.
const (
	// PhaseDeleting: the object is being deleted.
	PhaseDeleting Phase = "Deleting"
	// PhaseInvalid: the spec cannot be carried out; the condition Stalled says why.
	PhaseInvalid Phase = "Invalid"
	// PhaseHalted: the rollout failed, and goes no further.
	PhaseHalted Phase = "Halted"
	// PhaseRollingBack: the rollout failed, and returns to what ran before.
	PhaseRollingBack Phase = "RollingBack"
	// PhaseRolledBack: it has returned.
	PhaseRolledBack Phase = "RolledBack"
	// PhaseUnknown: a cluster is silent.
	PhaseUnknown Phase = "Unknown"
	// PhaseWaitingForConfirm: a gate waits for a Confirmation.
	PhaseWaitingForConfirm Phase = "WaitingForConfirm"
	// PhasePaused: the rollout is paused.
	PhasePaused Phase = "Paused"
	// PhaseInstalling: instances are created for the first time.
	PhaseInstalling Phase = "Installing"
	// PhaseUpdating: instances are brought to another content.
	PhaseUpdating Phase = "Updating"
	// PhaseScaling: instances are added or taken away.
	PhaseScaling Phase = "Scaling"
	// PhaseMigrating: a cluster or podSet leaves.
	PhaseMigrating Phase = "Migrating"
	// PhaseDegraded: all is done, but not all instances are available.
	PhaseDegraded Phase = "Degraded"
	// PhaseRunning: all instances are available.
	PhaseRunning Phase = "Running"
)

// ClusterState is what is known of a cluster.
type ClusterState string

// States of clusters.
const (
	// ClusterReady: its API server answers.
	ClusterReady ClusterState = "Ready"
	// ClusterSuspect: its API server did not answer lately.
	ClusterSuspect ClusterState = "Suspect"
	// ClusterOffline: its API server has not answered for long enough.
	ClusterOffline ClusterState = "Offline"
	// ClusterMaintaining: the operator took it out of service.
	ClusterMaintaining ClusterState = "Maintaining"
	// ClusterUnregistered: it is listed or has a part, and no registration has its name.
	ClusterUnregistered ClusterState = "Unregistered"
	// ClusterMistaken: another cluster answers under its name.
	ClusterMistaken ClusterState = "Mistaken"
	// ClusterUnfit: it answers, but cannot be used; the reason says why.
	ClusterUnfit ClusterState = "Unfit"
)

// AppSetStatus is the observed state of an AppSet.
type AppSetStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastUpdateTime is when the status changed last, by the controller's clock.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`

	// conditions are Ready, Reconciling, Stalled, ClustersReachable and
	// AwaitingConfirmation.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// aggrStatus are the sums over all clusters.
	// +optional
	AggrStatus AppSetAggregate `json:"aggrStatus,omitempty,omitzero"`

	// rollout is how far the current change has come.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`
}

// AppSetAggregate are the sums over all clusters.
type AppSetAggregate struct {
	// status in one word.
	// +optional
	Status Phase `json:"status,omitempty"`

	// version are the versions that run, sorted and joined by "/".
	// +optional
	Version string `json:"version,omitempty"`

	// desired instances in all clusters.
	Desired int32 `json:"desired"`

	// available instances in clusters that are heard.
	Available int32 `json:"available"`

	// unAvailable are the desired instances that are not known to be available.
	UnAvailable int32 `json:"unAvailable"`

	// unknown are those of them in clusters that are silent.
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// clusters one by one.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterStatus `json:"clusters,omitempty"`
}

// ClusterStatus is what is known of the part of an AppSet in one cluster.
type ClusterStatus struct {
	// name of the cluster.
	Name string `json:"name"`

	// state of the cluster.
	// +optional
	State ClusterState `json:"state,omitempty"`

	// asOf is up to when the rest is known to be true. Absent: now.
	// +optional
	AsOf *metav1.Time `json:"asOf,omitempty"`

	// reason in CamelCase, and message, a sentence, say what is wrong.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// desired, available and unAvailable instances in this cluster, as last seen.
	// +optional
	Desired int32 `json:"desired,omitempty"`
	// +optional
	Available int32 `json:"available,omitempty"`
	// +optional
	UnAvailable int32 `json:"unAvailable,omitempty"`

	// podSets one by one.
	// +optional
	// +listType=map
	// +listMapKey=name
	PodSets []PodSetStatus `json:"podSets,omitempty"`
}

// PodSetStatus is what was observed of one podSet in one cluster.
type PodSetStatus struct {
	// name of the podSet.
	Name string `json:"name"`

	// desired, available and unAvailable instances.
	Desired   int32 `json:"desired"`
	Available int32 `json:"available"`
	// +optional
	UnAvailable int32 `json:"unAvailable,omitempty"`

	// version that runs, or versions, joined by "/".
	// +optional
	Version string `json:"version,omitempty"`

	// clusterName is the cluster that the podSet is in.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// haveDeploy says whether the podSet's object exists.
	// +optional
	HaveDeploy *bool `json:"haveDeploy,omitempty"`

	// ready instances, those that have the wanted content (update), and all (current).
	// +optional
	Ready *int32 `json:"ready,omitempty"`
	// +optional
	Update *int32 `json:"update,omitempty"`
	// +optional
	Current *int32 `json:"current,omitempty"`

	// observed says that the podSet's object is as it is to be, and that its own controller
	// follows it: its content and its budget.
	// +optional
	Observed bool `json:"observed,omitempty"`

	// revision is the hash of the content that the podSet is to have.
	// +optional
	Revision string `json:"revision,omitempty"`

	// ordinals are the ids of its instances, such as 0-4.
	// +optional
	Ordinals string `json:"ordinals,omitempty"`

	// budget is how many of its instances may be out of service now. Absent: its kind's
	// default.
	// +optional
	Budget *int32 `json:"budget,omitempty"`

	// progressedAt is when the podSet last came nearer to its content, by the clock of
	// the controller that judges its progress.
	// +optional
	ProgressedAt *metav1.Time `json:"progressedAt,omitempty"`

	// reason in CamelCase, and message, a sentence, say what it waits for.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// RolloutStatus is how far a change has come.
type RolloutStatus struct {
	// id of the rollout: a hash of the content and the generation at which it began.
	// +optional
	ID string `json:"id,omitempty"`

	// revision is the hash of the content that is rolled out.
	// +optional
	Revision string `json:"revision,omitempty"`

	// stable is the hash of the last content that all podSets reached.
	// +optional
	Stable string `json:"stable,omitempty"`

	// state is Installing, Returning, Staged, Waiting, Halted, RollingBack, RolledBack, Done
	// or Unknown.
	// +optional
	State string `json:"state,omitempty"`

	// ran says of an installation that an instance of it was available. Until then it goes on
	// as an installation also where another content is asked for.
	// +optional
	Ran bool `json:"ran,omitempty"`

	// unproven: what is stable is an installation of which only some ran, and which was given
	// up. Nothing has run in all podSets yet.
	// +optional
	Unproven bool `json:"unproven,omitempty"`

	// message says in a sentence what the rollout waits for, or why it halted.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// budget is how many instances of all clusters together may be unavailable. Absent:
	// there is no budget for all.
	// +optional
	Budget *int32 `json:"budget,omitempty"`

	// charged is how much of the budget is in use.
	// +optional
	Charged int32 `json:"charged,omitempty"`

	// passed are the podSets that the rollout went on without, as cluster/podSet.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Passed []string `json:"passed,omitempty"`

	// stage that is under way, or waits.
	// +optional
	Stage string `json:"stage,omitempty"`

	// stages one by one, in their order.
	// +optional
	// +listType=map
	// +listMapKey=name
	Stages []StageStatus `json:"stages,omitempty"`
}

// StageStatus is how far one stage has come.
type StageStatus struct {
	// name of the stage.
	Name string `json:"name"`

	// state of the stage in one word.
	// +optional
	State string `json:"state,omitempty"`

	// podSets of the stage, those that are done, and those that failed.
	// +optional
	PodSets int32 `json:"podSets,omitempty"`
	// +optional
	Done int32 `json:"done,omitempty"`
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// started and finished by the controller's clock.
	// +optional
	Started *metav1.Time `json:"started,omitempty"`
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`

	// token of the gate after the stage, while it waits.
	// +optional
	Token string `json:"token,omitempty"`

	// confirmedBy is who let the rollout pass the gate.
	// +optional
	ConfirmedBy string `json:"confirmedBy,omitempty"`
}
