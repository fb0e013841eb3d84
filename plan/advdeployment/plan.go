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
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/release"
	"tkestack.io/tapp/plan/rollout"
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

// Compute decides the next step for one AdvDeployment. It never mutates its input; equal
// inputs give equal plans.
func Compute(in Input) Plan {
	if in.AdvDeployment.Annotations[v1beta1.AnnotationRestoring] != "" && in.AdvDeployment.DeletionTimestamp == nil {
		return Plan{Status: *in.AdvDeployment.Status.DeepCopy()}
	}
	d := in.AdvDeployment.DeepCopy()
	v1beta1.DefaultAdvDeployment(d)
	c := &computation{in: in, d: d, children: map[Child]*unstructured.Unstructured{}}
	for _, o := range in.Children {
		c.children[Child{Kind(o.GetKind()), o.GetName()}] = o
	}
	if d.DeletionTimestamp != nil {
		return c.leave()
	}
	if c.finalize() {
		return Plan{Actions: c.actions, Status: d.Status, Moving: true}
	}
	units, _, problems := podset.Placed(d)
	for _, p := range problems {
		c.stalls = append(c.stalls, stall{reason: v1beta1.ReasonInvalid, message: p.Field + ": " + p.Why})
	}
	c.invalid = len(problems) > 0
	if !c.invalid {
		c.roll(units)
		c.converge(units)
	}
	return c.conclude()
}

// computation is a plan in the making.
type computation struct {
	in       Input
	d        *v1beta1.AdvDeployment // with defaults
	children map[Child]*unstructured.Unstructured

	invalid  bool
	units    []unit
	leftOver []Child // ours, and not asked for any more
	actions  []Action
	releases []ReleasePlan
	rolling  *progression // nil: an AppSet decides how the podSets change
	keep     *podset.Keep
	obsolete []*appsv1.ControllerRevision
	stalls   []stall
	waits    []string // what is on its way
	notes    []string // what is worth a word when all is well
	taken    bool     // a child's name is
	unseen   bool     // a child is not written yet, or its own controller has not looked at it
}

// unit is a podSet with the child that it has become.
type unit struct {
	podset.Unit
	placed   *v1beta1.PlacedPodSet
	child    Child
	have     *unstructured.Unstructured // ours; nil: there is none
	upToDate bool                       // it is as the AdvDeployment says
	numbers  numbers
	verdict  *rollout.Verdict // of the rollout that is decided here; nil: of none
}

// stall is something that needs help.
type stall struct {
	reason, message string
	event           *Event
}

// finalize adds the finalizer by which a deleted AdvDeployment waits for its children. True: it
// is missing, and is written before anything else.
func (c *computation) finalize() bool {
	finalizers := slices.DeleteFunc(slices.Clone(c.d.Finalizers), func(f string) bool { return f == v1beta1.LegacyFinalizer })
	if !slices.Contains(finalizers, v1beta1.Finalizer) {
		finalizers = append(finalizers, v1beta1.Finalizer)
	}
	if slices.Equal(finalizers, c.d.Finalizers) {
		return false
	}
	c.setFinalizers(finalizers, false, "the children go before the AdvDeployment does")
	return true
}

func (c *computation) setFinalizers(finalizers []string, absent bool, why string) {
	c.actions = append(c.actions, Action{Op: Finalize, UID: c.d.UID, Version: c.d.ResourceVersion, Finalizers: finalizers, Absent: absent, Why: why})
}

// leave deletes the children of an AdvDeployment that is being deleted, and then removes the
// finalizer. If the deletion orphans the children, the garbage collector releases them.
func (c *computation) leave() Plan {
	status := *c.d.Status.DeepCopy()
	if !slices.Contains(c.d.Finalizers, v1beta1.Finalizer) {
		return Plan{Status: status}
	}
	left := 0
	if !slices.Contains(c.d.Finalizers, metav1.FinalizerOrphanDependents) {
		for _, child := range c.ours() {
			left++
			o := c.children[child]
			if o.GetDeletionTimestamp() == nil {
				c.remove(child, o, "its AdvDeployment is being deleted")
			}
			if why, refused := c.in.Refused[child]; refused {
				c.refused(child, why)
			}
			c.waits = append(c.waits, fmt.Sprintf("%s is being deleted", child))
		}
	}
	left += c.uninstall()
	if left == 0 {
		ours := func(f string) bool { return f == v1beta1.Finalizer }
		c.setFinalizers(slices.DeleteFunc(slices.Clone(c.d.Finalizers), ours), true, "no child is left")
	}
	return c.conclude()
}

// ours are the children that are ours, in a fixed order.
func (c *computation) ours() (out []Child) {
	for child, o := range c.children {
		if c.isOurs(o) {
			out = append(out, child)
		}
	}
	slices.SortFunc(out, func(a, b Child) int { return strings.Compare(string(a.Kind)+"/"+a.Name, string(b.Kind)+"/"+b.Name) })
	return out
}

// isOurs says whether this very AdvDeployment controls the object.
func (c *computation) isOurs(o metav1.Object) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.UID == c.d.UID
}

func (c *computation) remove(child Child, o metav1.Object, why string) {
	c.actions = append(c.actions, Action{Op: Delete, Child: child, UID: o.GetUID(), Why: why})
}
