package api

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/view"
)

// List is a page of a list. Lists are sorted: TApps, Apps and AppSets by namespace and
// name, instances by their id as a number.
type List[T any] struct {
	Items []T `json:"items"`
	// Total is how many there are on all pages.
	Total int `json:"total"`
	// Continue is the parameter continue of the next page; empty: this is the last one.
	Continue string `json:"continue,omitempty"`
	// Degraded says why the list is not current, such as an API server that does not
	// answer; AsOf is up to when it is true then. Both are absent where it is current.
	Degraded string       `json:"degraded,omitempty"`
	AsOf     *metav1.Time `json:"asOf,omitempty"`
}

// State of a TApp, an App or an AppSet in one word.
type State string

// The states, from the one that needs a human most.
const (
	// StateStalled: the controller cannot go on without help.
	StateStalled State = "Stalled"
	// StateFailed: nothing is left to do, and some instances failed.
	StateFailed State = "Failed"
	// StateWaiting: a rollout waits for a confirmation.
	StateWaiting State = "Waiting"
	// StateUnknown: some clusters are silent.
	StateUnknown State = "Unknown"
	// StatePaused: spec.paused holds updates that are left to do.
	StatePaused State = "Paused"
	// StateProgressing: on its way to the spec.
	StateProgressing State = "Progressing"
	// StateUnobserved: the controller has not seen the spec yet.
	StateUnobserved State = "Unobserved"
	// StateDeleting: it is being deleted.
	StateDeleting State = "Deleting"
	// StateReady: all is as the spec says.
	StateReady State = "Ready"
)

// Severity says in one word what kind of attention is needed.
type Severity string

// The severities, from the one that needs a human most.
const (
	// SeverityHalted: a rollout failed and goes no further, or has gone back.
	SeverityHalted Severity = "halted"
	// SeverityStalled: nothing goes on without help.
	SeverityStalled Severity = "stalled"
	// SeverityWaiting: a gate waits for a confirmation.
	SeverityWaiting Severity = "waiting"
	// SeveritySilent: a cluster is not heard, or cannot be used.
	SeveritySilent Severity = "silent"
	// SeverityLost: a node is lost, and instances wait for it or pods were deleted by force.
	SeverityLost Severity = "lost"
	// SeverityPaused: a pause holds what is left to do.
	SeverityPaused Severity = "paused"
)

// Attention is something that needs a human.
type Attention struct {
	Severity Severity `json:"severity"`
	// Reason in CamelCase, such as AwaitingConfirmation, ProgressDeadlineExceeded or
	// ClusterOffline.
	Reason string `json:"reason"`
	// Message is the planner's or the controller's sentence.
	Message string `json:"message"`
	// Since is when it began, if that is known.
	Since *metav1.Time `json:"since,omitempty"`
	// Cluster, Stage and Token say of which cluster it is, and which gate waits.
	Cluster string `json:"cluster,omitempty"`
	Stage   string `json:"stage,omitempty"`
	Token   string `json:"token,omitempty"`
	// Command is what one would do next, ready to copy.
	Command string `json:"command,omitempty"`
}

// Hint is a line for a shell that one may want next.
type Hint struct {
	// Title in a few words.
	Title string `json:"title"`
	// Line to copy.
	Line string `json:"line"`
}

// Summary is what TApps, Apps and AppSets have in common.
type Summary struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	UID       string      `json:"uid"`
	Created   metav1.Time `json:"created"`
	// Generation of the spec, and the one that the controller has seen.
	Generation         int64 `json:"generation"`
	ObservedGeneration int64 `json:"observedGeneration"`
	State              State `json:"state"`
	// Reason and Message of the condition that the state comes from, and since when.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
	// Attention is what needs a human; empty: nothing does.
	Attention []Attention `json:"attention,omitempty"`
}

// TApp is one line of the list of TApps.
type TApp struct {
	Summary
	// Replicas of the spec, and how many of them are to run: not stopped, not completed.
	Replicas int32 `json:"replicas"`
	Desired  int32 `json:"desired"`
	// Ready, available and updated pods, as in status.
	Ready     int32 `json:"ready"`
	Available int32 `json:"available"`
	Updated   int32 `json:"updated"`
	Paused    bool  `json:"paused,omitempty"`
	// MaxUnavailable is the budget of rolling updates in instances, and Unavailable how
	// many desired instances are not available.
	MaxUnavailable int32 `json:"maxUnavailable"`
	Unavailable    int32 `json:"unavailable"`
	// States are how many instances are in each state, such as Running: 9.
	States map[string]int `json:"states,omitempty"`
	// Templates of the spec with the number of instances that are to have each; those
	// without instances are left out.
	Templates []Template `json:"templates"`
	// CurrentRevision was rolled out last, UpdateRevision is being rolled out.
	CurrentRevision string `json:"currentRevision,omitempty"`
	UpdateRevision  string `json:"updateRevision,omitempty"`
}

// Template of a TApp.
type Template struct {
	Name string `json:"name"`
	// Images of its containers, as <container>=<image>.
	Images    []string `json:"images"`
	Instances int      `json:"instances"`
}

// TAppDetail is one TApp.
type TAppDetail struct {
	TApp
	// Waiting are the reasons why instances are not where the spec wants them, or what is
	// done about them next.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Steps are what is left to do, in the order in which it happens.
	Steps []Step `json:"steps,omitempty"`
	// Problems of the spec, with their field paths.
	Problems []string `json:"problems,omitempty"`
	// Commands that one may want next.
	Commands []Hint `json:"commands,omitempty"`
	// Object as it is stored, without managedFields.
	Object json.RawMessage `json:"object"`
	// Degraded and AsOf are those of List.
	Degraded string       `json:"degraded,omitempty"`
	AsOf     *metav1.Time `json:"asOf,omitempty"`
}

// Waiting is a reason that several instances share.
type Waiting struct {
	// Instances as ranges of ids, such as 0-3,7, and their number.
	Instances string `json:"instances"`
	Count     int    `json:"count"`
	// Reason in CamelCase, and Why, the planner's sentence.
	Reason string `json:"reason"`
	Why    string `json:"why"`
}

// Step is view.Step, and its sentence.
type Step struct {
	view.Step
	Sentence string `json:"sentence"`
}

// Instance of a TApp.
type Instance struct {
	// ID is the instance id. It is the key in changes of a list.
	ID       string `json:"id"`
	Template string `json:"template"`
	// State as in status.statuses: NotCreated, Pending, Running, Updating, PodFailed,
	// PodSucc, Killing, Killed, Failed, Succ or Unknown. Since is when it came to it.
	State string       `json:"state"`
	Since *metav1.Time `json:"since,omitempty"`
	// Desired: the spec asks for a running pod.
	Desired bool `json:"desired,omitempty"`
	// Available: desired, ready for minReadySeconds, neither terminating nor updating.
	Available bool `json:"available,omitempty"`
	// Current: the pod follows its template.
	Current bool `json:"current,omitempty"`
	// Version is the hash of the template that the pod follows, a key of
	// InstanceList.Versions; empty without a pod.
	Version string `json:"version,omitempty"`
	// Pod and Node are names; absent without a pod, or before it has a node.
	Pod      string `json:"pod,omitempty"`
	Node     string `json:"node,omitempty"`
	Restarts int32  `json:"restarts,omitempty"`
	// Reason and Why say why nothing is done although the instance is not where the spec
	// wants it: what it waits for.
	Reason string `json:"reason,omitempty"`
	Why    string `json:"why,omitempty"`
	// Next are the controller's next actions for it.
	Next []view.Action `json:"next,omitempty"`
}

// InstanceList is a page of the instances of a TApp, and sums over all of them.
type InstanceList struct {
	List[Instance]
	InstanceSums
}

// InstanceSums are over all instances of a TApp.
type InstanceSums struct {
	// States are how many instances are in each state.
	States map[string]int `json:"states"`
	// Versions that pods follow, the one with the most pods first.
	Versions []Version `json:"versions"`
	// Waiting are the reasons why instances are not where the spec wants them.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Desired and available instances, and the budget of rolling updates.
	Desired        int `json:"desired"`
	Available      int `json:"available"`
	MaxUnavailable int `json:"maxUnavailable"`
}

// Version of pods.
type Version struct {
	// Hash of the template.
	Hash string `json:"hash"`
	// Images of a pod of this version, as <container>=<image>.
	Images []string `json:"images"`
	// Instances that have it, and how many of them follow their template.
	Instances int `json:"instances"`
	Current   int `json:"current"`
}

// Revision of a TApp, with what changed since the one before.
type Revision struct {
	view.Revision
	Changes []view.FieldChange `json:"changes"`
	// Command that goes back to it; empty for the present one.
	Command string `json:"command,omitempty"`
}

// App is one line of the list of Apps.
type App struct {
	Summary
	Image      string `json:"image,omitempty"`
	Deployment string `json:"deployment,omitempty"`
	Service    string `json:"service,omitempty"`
	// Replicas asked for, and ready pods.
	Replicas int32 `json:"replicas"`
	Ready    int32 `json:"ready"`
}

// AppDetail is one App.
type AppDetail struct {
	App
	Commands []Hint          `json:"commands,omitempty"`
	Object   json.RawMessage `json:"object"`
	Degraded string          `json:"degraded,omitempty"`
	AsOf     *metav1.Time    `json:"asOf,omitempty"`
}

// AppSet is one line of the list of AppSets.
type AppSet struct {
	Summary
	// Phase is the column STATUS of kubectl, such as Running or WaitingForConfirm.
	Phase string `json:"phase,omitempty"`
	// Version are the versions that run, joined by /.
	Version string `json:"version,omitempty"`
	// Desired instances in all clusters, those known to be available, those that are not,
	// and how many of these are in clusters that are silent.
	Desired     int32 `json:"desired"`
	Available   int32 `json:"available"`
	Unavailable int32 `json:"unavailable"`
	Unknown     int32 `json:"unknown"`
	Paused      bool  `json:"paused,omitempty"`
	// Clusters are the names of those that it is in.
	Clusters []string `json:"clusters"`
	// Rollout is how far the current change has come.
	Rollout *v1beta1.RolloutStatus `json:"rollout,omitempty"`
}

// AppSetDetail is one AppSet.
type AppSetDetail struct {
	AppSet
	// ClusterStatuses are what is known of its part in each cluster, and up to when.
	ClusterStatuses []v1beta1.ClusterStatus `json:"clusterStatuses,omitempty"`
	Commands        []Hint                  `json:"commands,omitempty"`
	Object          json.RawMessage         `json:"object"`
	Degraded        string                  `json:"degraded,omitempty"`
	AsOf            *metav1.Time            `json:"asOf,omitempty"`
}

// Cluster is what the statuses of the AppSets that the caller may see tell of a cluster.
type Cluster struct {
	// Name in lower case, with "-" for "_".
	Name string `json:"name"`
	// State is Ready, Suspect, Offline, Maintaining, Unregistered, Mistaken or Unfit.
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// AsOf is up to when that is known to be true; absent: now.
	AsOf *metav1.Time `json:"asOf,omitempty"`
	// AppSets that are in it, and their instances there.
	AppSets   int   `json:"appSets"`
	Desired   int32 `json:"desired"`
	Available int32 `json:"available"`
}

// User is who asks.
type User struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// Event about an object or one of its pods.
type Event struct {
	// Type is Normal or Warning.
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Kind and Name of what it is about.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Count is how often it was seen, from First to Last.
	Count  int32        `json:"count"`
	First  *metav1.Time `json:"first,omitempty"`
	Last   *metav1.Time `json:"last,omitempty"`
	Source string       `json:"source,omitempty"`
}

// Pod of a TApp, an App or an AdvDeployment.
type Pod struct {
	// Cluster of a fleet; empty: this one.
	Cluster   string      `json:"cluster,omitempty"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	UID       string      `json:"uid"`
	Created   metav1.Time `json:"created"`
	// Deleting: it is being deleted.
	Deleting bool   `json:"deleting,omitempty"`
	Phase    string `json:"phase"`
	Ready    bool   `json:"ready"`
	Node     string `json:"node,omitempty"`
	IP       string `json:"ip,omitempty"`
	// Owner is whose pod it is, as <kind>/<name>.
	Owner      string             `json:"owner"`
	Labels     map[string]string  `json:"labels,omitempty"`
	Containers []Container        `json:"containers"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Container of a pod.
type Container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	// Init is a container that runs before the others, or beside them.
	Init  bool `json:"init,omitempty"`
	Ready bool `json:"ready"`
	// State in words, such as running, or waiting: ImagePullBackOff, ...
	State    string `json:"state"`
	Restarts int32  `json:"restarts"`
}

// Change is the event `change` of a stream: what is different in a list.
type Change[T any] struct {
	// Items that are new or other ones.
	Items []T `json:"items"`
	// Removed are the keys of those that are gone: <namespace>/<name>, or the id of an
	// instance.
	Removed []string `json:"removed,omitempty"`
	// Total is how many there are now.
	Total int `json:"total"`
}

// InstanceChange is the event `change` of a stream of instances.
type InstanceChange struct {
	Change[Instance]
	InstanceSums
}

// Health is the event `health` of a stream, sent when it changes: whether what is shown is
// current.
type Health struct {
	// Degraded says why it is not; empty: it is.
	Degraded string `json:"degraded,omitempty"`
	// AsOf is up to when what was sent is true.
	AsOf *metav1.Time `json:"asOf,omitempty"`
}

// present is the time, or nil if it is zero.
func present(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
