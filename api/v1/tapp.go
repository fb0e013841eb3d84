package v1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/plan/view"
)

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

// InstanceChange is the event `change` of a stream of instances.
type InstanceChange struct {
	Change[Instance]
	InstanceSums
}

// Preview is what applying a manifest would do.
type Preview struct {
	view.Preview
	// Sentences are the steps in words, in their order.
	Sentences []string `json:"sentences"`
}
