// Package advdeployment decides what happens next to one AdvDeployment: a pure function
// from what is asked for and what was observed to a list of actions and a status. It
// reads no clock and does no I/O.
//
// Each podSet becomes one child of its name, and the application one Service:
//
//	deployType    child
//	InPlaceSet    TApp
//	StatefulSet   StatefulSet
//	deployment    Deployment
//	helm          a release, about which plan/release decides
//
// What the cluster has under a child's name is one of
//
//	nothing   the child is missing: it is created
//	ours      it is controlled by this AdvDeployment, and applied again when it is not as
//	          the AdvDeployment says
//	orphan    nobody controls it, and an AdvDeployment of this name left it behind: it is
//	          adopted
//	dying     it is ours and being deleted: its end is waited for
//	foreign   it is anybody else's: it is not touched, and the AdvDeployment is stalled
//	          until the name is free
//
// Children that are ours and that nothing asks for any more go last: when all others have
// their content and are available.
package advdeployment

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/release"
)

// Kind of a child.
type Kind string

// The kinds of children, in the order in which they are applied.
const (
	Service     Kind = "Service"
	TApp        Kind = "TApp"
	StatefulSet Kind = "StatefulSet"
	Deployment  Kind = "Deployment"
)

// Release is no kind of the cluster, but a Helm release: what a podSet of deployType helm
// becomes.
const Release Kind = "Release"

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Service, TApp, StatefulSet, Deployment} }

// Child names a child in the namespace of its AdvDeployment.
type Child struct {
	Kind Kind
	Name string
}

func (c Child) String() string { return fmt.Sprintf("%s %q", c.Kind, c.Name) }

// AnnotationReplicasBy marks, in what a planner sees and nowhere else, a child whose
// spec.replicas another field manager than ours owns.
const AnnotationReplicasBy = v1beta1.GroupName + "/replicas-by"

// Input is all that a plan depends on.
type Input struct {
	// AdvDeployment as stored; Compute applies the defaults to a copy.
	AdvDeployment *v1beta1.AdvDeployment
	// Children that carry the name of the AdvDeployment in the label LabelAdvDeployment,
	// and those of any owner that have the name of a child, in any order.
	Children []*unstructured.Unstructured
	// Autoscaled are the children that a HorizontalPodAutoscaler scales: their number of
	// replicas is left to it.
	Autoscaled map[Child]bool
	// Overruled are the differences that a child still had right after it was applied: the
	// cluster's admission makes them, and to apply again would never end.
	Overruled map[Child][]string
	// Refused says in the API server's words why it refused an action on a child.
	Refused map[Child]string
	// Releases are what was observed of Helm releases: those that the AdvDeployment asks
	// for, and those that have records of it. Compute fills in what is asked for.
	Releases map[string]release.Input
	// Revisions of an AdvDeployment that no AppSet made: those that have its UID in the
	// label LabelAdvDeploymentUID.
	Revisions []*appsv1.ControllerRevision
	// Confirmations of the namespace.
	Confirmations []*v1beta1.Confirmation
	// Now is the time of the decision.
	Now time.Time
}

// Plan is the next step for one AdvDeployment.
type Plan struct {
	// Keep is what to store before all else; nil: nothing.
	Keep *podset.Keep
	// Obsolete revisions, to delete.
	Obsolete []*appsv1.ControllerRevision
	// Actions that may all be carried out at once, after Keep.
	Actions []Action
	// Releases are the plans for Helm releases, in the order of their names, after Actions.
	Releases []ReleasePlan
	// Status from what was observed, never from hoped-for effects.
	Status v1beta1.AdvDeploymentStatus
	// Moving is true while a change is in progress: a status that tells only of progress
	// changes again soon, and may be deferred.
	Moving bool
	// Events to tell of what the status says for the first time.
	Events []Event
	// Wait is after how long to look again whether a name is free; 0: wait for an event.
	Wait time.Duration
}

// Op is what to do.
type Op string

// The operations.
const (
	// Finalize sets the finalizers of the AdvDeployment itself, in the version that was
	// observed.
	Finalize Op = "Finalize"
	// Create applies the manifest if nothing has the name.
	Create Op = "Create"
	// Apply applies the manifest to the very version that was observed.
	Apply Op = "Apply"
	// Adopt is Apply to a child that nobody controls. Before it, a live read has to show that
	// the AdvDeployment exists and is not being deleted.
	Adopt Op = "Adopt"
	// Correct patches what an apply cannot remove, in the very version that was observed.
	Correct Op = "Correct"
	// Delete deletes the child with this UID, and its pods before it.
	Delete Op = "Delete"
)

// Action is one write.
type Action struct {
	Op    Op
	Child Child
	// UID and Version of the object that was observed; empty for Create.
	UID     types.UID
	Version string
	// Observed is the child that Apply and Correct are about, as it was.
	Observed *unstructured.Unstructured
	// Manifest to apply; of Correct, what the child is to become.
	Manifest map[string]any
	// Patch is the JSON patch of Correct.
	Patch []byte
	// Finalizers that the AdvDeployment is to have, of Finalize.
	Finalizers []string
	// Absent says that the action relies on the absence of children: it is carried out only
	// if the view was read live.
	Absent bool
	// Why in one sentence.
	Why string
}

// Event about the AdvDeployment.
type Event struct {
	Type, Reason, Message string
}
