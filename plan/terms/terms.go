// Package terms has the types in which the planner of TApps answers: operations, actions and
// instances, and the operator's policy that it goes by.
package terms

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/spread"
	"tkestack.io/tapp/plan/trial"
)

// Policy is what the operator of the controller decides for all TApps.
type Policy struct {
	// DeletePodAfterAppFinish keeps finished pods until all instances of the TApp
	// have finished, and then deletes them; false deletes each at once.
	DeletePodAfterAppFinish bool
	// NodeLostAfter is how long a node has to be NotReady or Unknown to count as
	// lost.
	NodeLostAfter time.Duration
	// Resize is true where the cluster has the subresource resize of pods (KEP-1287).
	Resize bool
	// Spread says by which constraints new pods are spread.
	Spread spread.Policy
	// Try: nothing that serves is interrupted for what the API server does not take: earlier
	// plans ask (OpTry).
	Try bool
	// Tracking is the label by which Argo CD tracks objects; empty: nobody does.
	Tracking string
	// Batch caps the creates and updates of one template in one plan; the other instances
	// have their turn with the next plans. It bounds what a plan of many thousand
	// instances holds, and how long it takes to carry out. 0: no cap.
	Batch int
}

// Op is what an action does to the cluster.
type Op string

// The operations. The comment gives the writes that each takes.
const (
	// OpCreate creates a pod: a POST, and a patch of its status when Status is
	// set.
	OpCreate Op = "Create"
	// OpReplace deletes a finished pod and creates the next one at once: a DELETE,
	// then as OpCreate. Between the two nothing else could keep the count of
	// failures but the status, which does where the pod cannot go at once.
	OpReplace Op = "Replace"
	// OpCreateClaim creates a claim: a POST.
	OpCreateClaim Op = "CreateClaim"
	// OpUpdateClaim changes the owner or the size of a claim: a patch.
	OpUpdateClaim Op = "UpdateClaim"
	// OpDeleteClaim deletes a claim: a DELETE.
	OpDeleteClaim Op = "DeleteClaim"
	// OpDelete deletes a pod within its grace period: a DELETE.
	OpDelete Op = "Delete"
	// OpForceDelete deletes a pod whose node is lost: a DELETE with grace period
	// 0, conditional on the resourceVersion.
	OpForceDelete Op = "ForceDelete"
	// OpDrain takes a pod out of its Services: a patch of its status.
	OpDrain Op = "Drain"
	// OpUpdateInPlace changes images and metadata of a pod: a patch.
	OpUpdateInPlace Op = "UpdateInPlace"
	// OpResize changes the resources of a running pod: a patch of its subresource
	// resize.
	OpResize Op = "Resize"
	// OpUndrain lets a pod into its Services: a patch of its status.
	OpUndrain Op = "Undrain"
	// OpTry asks what the API server says of a patch, or of the creation of a pod where there
	// is none: a dry run.
	OpTry Op = "Try"
	// OpRelabel changes only metadata of a pod: a patch.
	OpRelabel Op = "Relabel"
	// OpAdopt makes the TApp the controller of a pod: a patch. The shell first
	// reads the TApp live, and adopts only if it is still the same one and not
	// being deleted.
	OpAdopt Op = "Adopt"
	// OpRelease ends the TApp's ownership of a pod: a patch.
	OpRelease Op = "Release"
	// OpCreateRevision records a version of the templates: a POST.
	OpCreateRevision Op = "CreateRevision"
	// OpUpdateRevision makes a revision the newest one again: a patch.
	OpUpdateRevision Op = "UpdateRevision"
	// OpPruneTemplates drops unused templates from the TApp's spec: a patch.
	OpPruneTemplates Op = "PruneTemplates"
	// OpDeleteRevision forgets a version: a DELETE.
	OpDeleteRevision Op = "DeleteRevision"
)

// Action is one step for one instance.
type Action struct {
	Op Op
	// ID is the instance id; empty for a revision, which is the TApp's as a whole.
	ID string
	// Pod is the pod to create (Create, Replace), otherwise the observed one. It must
	// not be changed: new ones share what they have in common.
	Pod *corev1.Pod
	// Old is the observed pod that Replace deletes.
	Old *corev1.Pod
	// Claim is the claim to create, or the observed one, which must not be changed.
	Claim *corev1.PersistentVolumeClaim
	// Revision is the one to create, or the observed one, which must not be changed.
	Revision *appsv1.ControllerRevision
	// Patch is a strategic merge patch of the pod or claim, or a JSON merge patch of
	// the revision or of the TApp, conditional on its UID.
	Patch []byte
	// Refused is a strategic merge patch of the pod for the case that the API server
	// refuses a Resize for good: it remembers that.
	Refused []byte
	// Status is a strategic merge patch of the pod's status: the only write of
	// Drain and Undrain (then conditional on the UID), and the second write of
	// Create and Replace.
	Status []byte
	// ResourceVersion of the pod that Delete and ForceDelete hold for; empty: any. A
	// disruption that spends no budget because the pod was not available holds for the
	// observed version only. Patches have that in them.
	ResourceVersion string
	// Question that Try asks, and that other actions answer, too.
	Question trial.Question
	// ForUpdate: Delete makes room for the update or the restart of the instance.
	ForUpdate bool
	// Reason in CamelCase: the reason of events and the label of metrics.
	Reason string
	// Why is one sentence, used word for word wherever the action is told of.
	Why string
}

// UID of the observed pod, claim or revision, which deletes are conditional on.
func (a Action) UID() types.UID {
	switch {
	case a.Old != nil:
		return a.Old.UID
	case a.Revision != nil:
		return a.Revision.UID
	case a.Claim != nil:
		return a.Claim.UID
	}
	return a.Pod.UID
}

// Instance is what a plan says of one instance id.
type Instance struct {
	ID       string
	Num      int // the id as a number
	Template string
	Status   tappv1.InstanceStatus
	// Pod is the observed pod, or nil.
	Pod *corev1.Pod
	// Desired: the instance is to have a running pod.
	Desired bool
	// Forced: its updates are by force and not by rolling.
	Forced bool
	// Serving: desired and Ready, neither terminating nor updating; or it may be so, on a
	// node that is silent. To interrupt it needs room in the budget.
	Serving bool
	// Available: serving for minReadySeconds.
	Available bool
	// Current: the pod follows its template.
	Current bool
	// Kept: the pod was made as the instance was, or as usual, and not from its template.
	Kept bool
	// Reason and Why say why there is no action although the instance is not where
	// the spec wants it; empty otherwise.
	Reason string
	Why    string
}
