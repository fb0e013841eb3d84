package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// User is who asks.
type User struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
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

// Health is the event `health` of a stream, sent when it changes: whether what is shown is
// current.
type Health struct {
	// Degraded says why it is not; empty: it is.
	Degraded string `json:"degraded,omitempty"`
	// AsOf is up to when what was sent is true.
	AsOf *metav1.Time `json:"asOf,omitempty"`
}

// Present is the time, or nil if it is zero.
func Present(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
