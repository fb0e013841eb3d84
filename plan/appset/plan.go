// Package appset decides what happens next to one AppSet: a pure function from what is
// wanted, and what was seen of all clusters, to writes and a status. It reads no clock
// and does no I/O.
//
// In each cluster an AppSet has one part, an AdvDeployment of its own name. What a
// cluster has under that name is one of
//
//	nothing   it is created
//	ours      it carries the marks of this AppSet and this fleet, and is put right where
//	          it is not as the AppSet says. That of an earlier AppSet of this name is taken
//	          over
//	foreign   it is somebody else's: it is not touched
//
// What is known of a cluster has an age. Nothing is deleted, and nothing is taken for
// gone, on a sight that is not certain; nothing is written to a cluster that does not
// answer, or is not the one that it was.
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
	// Clusters of Concerned, and all others in which there is a part, in any order. One
	// that no registration has is Unregistered.
	Clusters []Cluster
	// Charts are what the places in Charts(AppSet) were resolved to, by podset.Chart.Place;
	// nil: nobody asked.
	Charts map[string]Chart
	// Revisions of the AppSet: those that have its UID in the label LabelAppSetUID.
	Revisions []*appsv1.ControllerRevision
	// Confirmations of the namespace.
	Confirmations []*v1beta1.Confirmation
	// Tombstones of parts of this namespace and name.
	Tombstones []Tombstone
	// Overruled are the differences that a part had right after it was put right:
	// admission of its cluster wants them, and writing again would not end.
	Overruled map[string][]string
	// Lost are the fields that a cluster did not keep of a part that was applied lately: it
	// cannot be used for this AppSet.
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
	// UID of its namespace kube-system; empty: it has never been heard.
	UID types.UID
	// Replaces is the UID of the cluster that it took the place of, by a human's word.
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

// Tombstone tells of a part that was given up in a cluster which could not be heard.
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
	// Moving is true while the clusters are on their way: a status that only tells of
	// this will soon be another one, and may be held back.
	Moving bool
	// Events to tell of what the status says for the first time.
	Events []Event
	// Wait is when to look again for a name that is taken; 0: wait for an event.
	Wait time.Duration
}

// Own is what the AppSet is to have.
type Own struct {
	Finalizers []string
	// Clusters is the annotation AnnotationClusters.
	Clusters string
	// Gone are the clusters without which the AppSet goes on. Whether they really have no
	// part has to be read live before. Only Forget has some.
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
	// Correct patches what no apply takes away, in the very version that was observed.
	Correct Op = "Correct"
	// Release patches our marks away: the part becomes a user's.
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
	// UID and Version of the part that was observed; empty for Create. Of Unbury, the part
	// that may stay.
	UID     types.UID
	Version string
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

// waitTaken is when a name that is taken is looked at again.
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
