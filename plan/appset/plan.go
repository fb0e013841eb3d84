// Package appset decides what happens next to one AppSet: a pure function from the spec
// and what was observed in all clusters to writes and a status. It reads no clock and does
// no I/O.
//
// In each cluster an AppSet has one part, an AdvDeployment of its own name. What a
// cluster has under that name is one of
//
//	nothing   it is created
//	ours      it carries the marks of this AppSet and this fleet: differences from what
//	          the AppSet asks for are corrected. The part of an earlier AppSet of this name
//	          is taken over
//	foreign   it belongs to somebody else: it is not touched
//
// What is known of a cluster has an age, and certain says whether it is current. Nothing is
// deleted or counts as gone unless that is certain. Nothing is written to a cluster that
// does not answer, or whose identity (the UID of kube-system) has changed.
package appset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// Input is all that a plan depends on.
type Input struct {
	// AppSet as stored.
	AppSet *v1beta1.AppSet
	// Fleet is the id of the hub's fleet.
	Fleet string
	// Clusters named by Concerned, and all others that have a part, in any order. A cluster
	// without a registration is Unregistered.
	Clusters []Cluster
	// Charts are the results of fetching what Charts(AppSet) names, by podset.Chart.Place;
	// nil: nothing was fetched, as in a preview.
	Charts map[string]Chart
	// Revisions of the AppSet: those that have its UID in the label LabelAppSetUID.
	Revisions []*appsv1.ControllerRevision
	// Confirmations of the namespace.
	Confirmations []*v1beta1.Confirmation
	// Tombstones of parts of this namespace and name.
	Tombstones []Tombstone
	// Overruled are the differences, by cluster, that a part still had right after it was
	// written: the cluster's admission makes them, and to write again would never end.
	Overruled map[string][]string
	// Lost are the fields, by cluster, that were applied lately and that the cluster did not
	// store (see func Lost). Such a cluster is unfit for this AppSet.
	Lost map[string][]string
	// Refused says why a cluster did not take a write.
	Refused map[string]Refusal
	// Now is the time of the decision.
	Now time.Time
}

// Cluster is what is known of one cluster.
type Cluster struct {
	// Name as registered, folded.
	Name string
	// UID of its namespace kube-system, which identifies it; empty: it never answered.
	UID types.UID
	// Replaces is the UID of the cluster that it replaces, as a human said by a label.
	Replaces types.UID
	// Labels are the metadata of its registration, which stages select by.
	Labels          map[string]string
	State           v1beta1.ClusterState
	Reason, Message string
	// AsOf is up to when Part is known to be true.
	AsOf time.Time
	// Part is what the cluster has under the AppSet's name, or had when it was last seen;
	// nil: nothing.
	Part *v1beta1.AdvDeployment
	// Certain: Part, or that there is none, is from a cache that is known to be current.
	Certain bool
}

// Refusal of a write by a cluster.
type Refusal struct {
	// Words of the API server.
	Words string
	// NoNamespace: the AppSet's namespace is missing there.
	NoNamespace bool
}

// Tombstone remembers a part that was given up in a cluster that did not answer.
type Tombstone struct {
	// AppSet whose part it was.
	AppSet types.NamespacedName
	UID    types.UID
	// Cluster by name and identity.
	Cluster    string
	ClusterUID types.UID
	// Since when it is given up.
	Since time.Time
}

// Plan is the next step for one AppSet.
type Plan struct {
	// Own is what to write to the AppSet itself, before all else; nil: nothing.
	Own *Own
	// Keep is what to store on the hub after Own, and before all else; nil: nothing.
	Keep *podset.Keep
	// Obsolete revisions, to delete.
	Obsolete []*appsv1.ControllerRevision
	// Actions that may all be carried out at once, after Own and Keep.
	Actions []Action
	// Forget is what to write to the AppSet itself when all else is done; nil: nothing. It
	// needs a live read, and so comes last: a cluster that does not answer holds up no write.
	Forget *Own
	// Status from what was observed, never from hoped-for effects.
	Status v1beta1.AppSetStatus
	// Moving is true while a change is in progress: a status that tells only of progress
	// changes again soon, and may be deferred.
	Moving bool
	// Events to tell of what the status says for the first time.
	Events []Event
	// Wait is after how long to look again whether a name is free; 0: wait for an event.
	Wait time.Duration
}

// Own is what the AppSet is to have.
type Own struct {
	Finalizers []string
	// Clusters is the annotation AnnotationClusters.
	Clusters string
	// Gone are the clusters that are no longer in Clusters. Before the write, a live read has
	// to show that they have no part. Only Forget has some.
	Gone []string
	Why  string
}

// Op is what to do in a cluster.
type Op string

// The operations. The last two are about a ConfigMap of the hub.
const (
	// Create applies the manifest if nothing has the name.
	Create Op = "Create"
	// Apply applies the manifest to the very version that was observed.
	Apply Op = "Apply"
	// Correct patches what an apply cannot remove, in the very version that was observed.
	Correct Op = "Correct"
	// Release removes our marks by a patch: the part belongs to the users then.
	Release Op = "Release"
	// Delete deletes the part with this UID.
	Delete Op = "Delete"
	// Bury stores the tombstone, and Unbury deletes it.
	Bury   Op = "Bury"
	Unbury Op = "Unbury"
)

// Action is one write.
type Action struct {
	Op Op
	// Cluster by its folded name.
	Cluster string
	// UID and Version of the part that was observed; empty for Create. Of Unbury, UID is the
	// part that stays.
	UID     types.UID
	Version string
	// Observed is the part as it was; nil for Create.
	Observed *v1beta1.AdvDeployment
	// Manifest to apply; of Correct, what the part is to become.
	Manifest map[string]any
	// Patch is the JSON patch of Correct and Release.
	Patch     []byte
	Tombstone *Tombstone
	// Event to tell of when it is done; nil: none.
	Event *Event
	// Why in one sentence.
	Why string
}

// Event about the AppSet.
type Event struct{ Type, Reason, Message string }

// Reasons of conditions, events and clusters, beside those of v1beta1.
const (
	ReasonHubRestored   = "HubRestored"
	ReasonNoNamespace   = "NamespaceMissing"
	ReasonUnreachable   = "ClusterUnreachable"
	ReasonUnregistered  = "ClusterUnregistered"
	ReasonMaintaining   = "ClusterMaintaining"
	ReasonMistaken      = "ClusterMistaken"
	ReasonUnfit         = "ClusterUnfit"
	ReasonAbandoned     = "ClusterAbandoned"
	ReasonLeaving       = "ClusterLeaving"
	ReasonPartCorrected = "PartCorrected"
	ReasonPartStalled   = "PartStalled"
	ReasonReachable     = "Reachable"
	ReasonGate          = "WaitingForConfirm"
	ReasonHalted        = v1beta1.ReasonHalted
	ReasonRolledBack    = v1beta1.ReasonRolledBack
	ReasonHeld          = v1beta1.ReasonHeld
	// ReasonChart is the reason for a chart that cannot be had; releases have the same.
	ReasonChart = "ChartError"
)

// waitTaken is after how long to look again at a name that is taken.
const waitTaken = 5 * time.Second

// Compute decides the next step for one AppSet. It never mutates its input; equal inputs
// give equal plans.
func Compute(in Input) Plan {
	if in.AppSet.Annotations[v1beta1.AnnotationRestoring] != "" && in.AppSet.DeletionTimestamp == nil {
		return Plan{Status: *in.AppSet.Status.DeepCopy()}
	}
	c := newComputation(in)
	switch {
	case c.deleting():
		c.delete()
	case c.restored(), c.invalid():
		c.troubles()
	default:
		c.lose()
		c.troubles()
		c.roll()
		c.compare()
		for _, s := range c.sites {
			c.site(s)
		}
		c.leave()
		c.remember()
	}
	if !c.frozen {
		c.returned()
	}
	return c.conclude()
}
