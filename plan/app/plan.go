// Package app decides what happens next to one App: a pure function from what is
// wanted and what was observed to a list of actions and a status. It reads no
// clock and does no I/O.
//
// An App has at most two children, a Deployment and a Service. What the cluster
// has under a child's name is one of
//
//	nothing   the child is missing: it is created
//	ours      it is controlled by this App, and applied again when it is not as
//	          the App says
//	orphan    nobody controls it, and an App of this name left it behind: it is
//	          adopted
//	dying     it is ours and being deleted: its end is waited for
//	foreign   it is anybody else's: it is not touched, and the App is stalled until
//	          the name is free
//
// Children that are ours and have another name than the App says go, as soon as
// there is one under the new name.
package app

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// Kind of a child.
type Kind string

// The kinds of children, in the order in which they are applied.
const (
	Deployment Kind = "Deployment"
	Service    Kind = "Service"
)

// Child names a child in the App's namespace.
type Child struct {
	Kind Kind
	Name string
}

func (c Child) String() string { return fmt.Sprintf("%s %q", c.Kind, c.Name) }

// Input is all that a plan depends on.
type Input struct {
	// App as stored; Compute applies the defaults to a copy.
	App *appv1.App
	// Deployments and Services that carry the App's name in the label LabelApp, and
	// those of any owner that have the name of a child, in any order.
	Deployments []*appsv1.Deployment
	Services    []*corev1.Service
	// Overruled are the differences that a child had from what was applied to it
	// right after that: admission of the cluster wants them, and applying again would
	// not end.
	Overruled map[Child][]string
	// Refused says in the API server's words why it did not take an action on a
	// child.
	Refused map[Child]string
	// Now is the time of the decision.
	Now time.Time
}

// Plan is the next step for one App.
type Plan struct {
	// Actions that may all be carried out at once.
	Actions []Action
	// Status from what was observed, never from hoped-for effects.
	Status appv1.AppStatus
	// Moving is true while the children are on their way: a status that only tells
	// of this will soon be another one, and may be held back.
	Moving bool
	// Events to tell of what the status says for the first time.
	Events []Event
	// Wait is when to look again for a name that is taken; 0: wait for an event.
	Wait time.Duration
}

// Op is what to do.
type Op string

// The operations.
const (
	// Create applies the manifest if nothing has the name.
	Create Op = "Create"
	// Apply applies the manifest to the very version that was observed.
	Apply Op = "Apply"
	// Adopt is Apply to a child that nobody controls. Only an App that exists and is
	// not being deleted may do so, which has to be read live.
	Adopt Op = "Adopt"
	// Correct patches what no apply takes away in the very version that was observed. It
	// is the remedy too for an apply that was refused.
	Correct Op = "Correct"
	// Delete deletes the child with this UID.
	Delete Op = "Delete"
)

// Action is one write.
type Action struct {
	Op    Op
	Child Child
	// UID and Version of the child that was observed; empty for Create.
	UID     types.UID
	Version string
	// Manifest to apply; of Correct, what the child is to become.
	Manifest map[string]any
	// Patch is the JSON patch of Correct.
	Patch []byte
	// Why in one sentence.
	Why string
}

// Event about the App.
type Event struct {
	Type, Reason, Message string
}
