// Package tapp decides what happens next to one TApp: a pure function from what
// is wanted and what was observed to an ordered list of actions, a status, and
// the time of the next look. It reads no clock and does no I/O; the controller,
// `kubectl tapp plan`, the admission preview and the simulation all call it.
//
// Every instance id is in exactly one state:
//
//	missing      it has no pod
//	foreign      its name is taken by a pod that is not the TApp's
//	orphan       its pod has no controller, and is the TApp's to adopt
//	unmatched    its pod is the TApp's, but the selector no longer matches it
//	terminating  its pod is being deleted, or about to be since its node is gone
//	ended        its pod ended (Failed or Succeeded)
//	alive        its pod is none of these
//
// and the spec asks one of three things of it: to run, to be stopped (by
// spec.statuses, or because its id is out of range), or to stay as it ended.
//
// A plan is made in steps: the spec is read, the instances are observed, and one
// intent is decided for each of them (intentOf). The steps of Compute carry intents
// out as far as budgets, turns and gates allow; Preview tells the same intents.
package tapp

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/claim"
	"tkestack.io/tapp/plan/evidence"
	"tkestack.io/tapp/plan/problem"
	"tkestack.io/tapp/plan/refusal"
	"tkestack.io/tapp/plan/termination"
	"tkestack.io/tapp/plan/terms"
	"tkestack.io/tapp/plan/trial"
)

// Input is all that a plan depends on.
type Input struct {
	// TApp as stored; Compute applies the defaults to a copy.
	TApp *tappv1.TApp
	// Pods that the TApp controls, and those without a controller that match its
	// selector, in any order.
	Pods []*corev1.Pod
	// Claims of the TApp's namespace that carry the name of one of its instances,
	// in any order.
	Claims []*corev1.PersistentVolumeClaim
	// Workloads of the namespace that an earlier plan asked for in Plan.Workloads, by name:
	// TApps and StatefulSets. An entry without any says that there is none.
	Workloads map[string][]claim.Workload
	// Revisions of the namespace that carry the TApp's name in the label
	// LabelTApp, in any order. Their data may be left out while RevisionsRead is false.
	Revisions []*appsv1.ControllerRevision
	// RevisionsRead: Revisions are all there are, with their data, as an earlier plan asked
	// for in Plan.NeedsRevisions.
	RevisionsRead bool
	// ForUpdate has the ids of the instances whose pods this process deleted for their
	// update or restart, and that had no next pod since. It is a hint: after a change of
	// leader their pods count as lost.
	ForUpdate map[string]struct{}
	// Refused is what the API server refused of earlier plans. Nil: nothing has been tried
	// yet, and the stored condition tells.
	Refused refusal.Set
	// Nodes is evidence about the nodes that an earlier plan asked for in
	// Plan.Evidence, by name.
	Nodes map[string]NodeState
	// NodesBefore is what earlier reads said, to tell of it: nothing goes by force by that.
	NodesBefore map[string]NodeState
	// NodesAfter is the last one of the nodes that were read most recently: the plan asks
	// for those that follow.
	NodesAfter string
	// Trials are what the API server answered to actions Try of earlier plans, and to writes.
	Trials trial.Answers
	// NoCreationUntil: nothing is created before, since the API server said that the
	// namespace is being deleted. The zero value bounds nothing.
	NoCreationUntil time.Time
	// Now is the time of the decision.
	Now time.Time
	// Policy is the operator's.
	Policy Policy
}

// NodeState is what a live read said of a node.
type NodeState = evidence.Node

// Problem is something in a spec that the controller cannot do.
type Problem = problem.Problem

// Plan is the next step for one TApp.
type Plan struct {
	// Actions in ascending order of instance ids; all of them may be carried out
	// at once.
	Actions []Action
	// History are actions on the TApp's revisions, and on the TApp itself. They change
	// nothing that runs, and may be carried out with the others; but what edits the
	// TApp (OpPruneTemplates) goes before its status, which makes another version of it.
	History []Action
	// Status from what was observed, never from hoped-for effects.
	Status tappv1.TAppStatus
	// StatusDeferrable is true when the status tells only of progress, and no later plan
	// reads it: it may wait for the next one.
	StatusDeferrable bool
	// Instances is what the plan says of each id, in ascending order, for people.
	Instances []Instance
	// Desired is how many instances are to have a running pod.
	Desired int
	// Budgets of updates, for so many desired instances.
	Budgets Budgets
	// Problems are what keeps the controller from doing what the spec says.
	Problems []Problem
	// Evidence names nodes about which the next plan needs a live read, the most important
	// ones first.
	Evidence []string
	// Refused is what of Input.Refused is wanted still, for the next plan.
	Refused refusal.Set
	// Terminating are the claims that are being deleted while a pod mounts them, by others
	// than a policy of the TApp, in ascending order of their instances.
	Terminating []termination.Claim
	// NeedsRevisions: the next plan needs the data of the revisions, see Input.RevisionsRead.
	NeedsRevisions bool
	// Workloads are the names of TApps and StatefulSets about which the next plan needs a
	// read, because they can make a claim of the same name.
	Workloads []string
	// Wait says after how long time alone may change the plan; 0: it cannot.
	Wait time.Duration
}

// What the planner answers in, see plan/terms.
type (
	// Op is what an action does to the cluster.
	Op = terms.Op
	// Action is one step for one instance.
	Action = terms.Action
	// Instance is what a plan says of one instance id.
	Instance = terms.Instance
	// Policy is what the operator of the controller decides for all TApps.
	Policy = terms.Policy
)

// The operations.
const (
	OpCreate         = terms.OpCreate
	OpReplace        = terms.OpReplace
	OpCreateClaim    = terms.OpCreateClaim
	OpUpdateClaim    = terms.OpUpdateClaim
	OpDeleteClaim    = terms.OpDeleteClaim
	OpDelete         = terms.OpDelete
	OpForceDelete    = terms.OpForceDelete
	OpDrain          = terms.OpDrain
	OpUpdateInPlace  = terms.OpUpdateInPlace
	OpResize         = terms.OpResize
	OpUndrain        = terms.OpUndrain
	OpTry            = terms.OpTry
	OpRelabel        = terms.OpRelabel
	OpAdopt          = terms.OpAdopt
	OpRelease        = terms.OpRelease
	OpCreateRevision = terms.OpCreateRevision
	OpUpdateRevision = terms.OpUpdateRevision
	OpPruneTemplates = terms.OpPruneTemplates
	OpDeleteRevision = terms.OpDeleteRevision
)
