// Package release decides what happens next to one Helm release: a pure function from
// the chart as it was rendered, the records and the objects of the cluster to writes and
// to what is known of its workloads. It reads no clock and does no I/O.
//
// A release goes through its states as Helm's do. Each of them is told by its record, so
// that whoever goes on after an interruption knows where:
//
//	nothing             the chart is rendered; crds/ are created where they are missing
//	pending-install     hooks pre-install, objects, hooks post-install
//	pending-upgrade     hooks pre-upgrade, objects, what the new record lacks is pruned,
//	                    hooks post-upgrade
//	deployed            its objects are kept as the record says
//	failed              a hook failed: nothing more is done until the content is another
//	                    one, or another try is asked for. Or an object was refused: that is
//	                    tried again
//	superseded          a later one is deployed
//	uninstalling        hooks pre-delete, objects in the opposite order, hooks post-delete,
//	                    records
//
// A new record is made when chart, values or content are other ones than those of the
// last record, or another try of one is asked for whose hook failed, never to look: functions such as randAlphaNum would differ each time.
package release

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Ref names an object. Namespace is empty for an object of the cluster.
type Ref struct{ APIVersion, Kind, Namespace, Name string }

func (r Ref) String() string { return fmt.Sprintf("%s %q", r.Kind, r.Name) }

// RecordRef stands for the records of a release in Input.Refused.
func RecordRef(name string) Ref { return Ref{Kind: "Release", Name: name} }

// Object of a manifest, with the template that it comes from. Its numbers are those that
// an API server gives: int64 and float64.
type Object struct {
	Source  string
	Content map[string]any
}

// Hook is an object that is created at certain events, and waited for.
type Hook struct {
	Object
	Name           string
	Events         []string
	Weight         int
	DeletePolicies []string
	Run            Run
}

// Run is how a hook ran last: Running, Succeeded or Failed.
type Run struct {
	Phase              string
	Started, Completed time.Time
}

// Status of a record, as Helm has it.
type Status string

// The states that a record of ours may have.
const (
	PendingInstall Status = "pending-install"
	PendingUpgrade Status = "pending-upgrade"
	Deployed       Status = "deployed"
	Superseded     Status = "superseded"
	Failed         Status = "failed"
	Uninstalling   Status = "uninstalling"
)

// Record is one revision of the release.
type Record struct {
	Version     int
	Status      Status
	Description string
	// Chart is name and version of the chart, for words.
	Chart string
	// Owner is the UID of the AdvDeployment that made it; empty: somebody else did.
	Owner types.UID
	// Content is the hash of the unit's content that it was made for.
	Content string
	// Replicas that the chart was given as a value; nil: it takes none.
	Replicas *int32
	// Retried is the request for another try that was there when it was made, or when a hook
	// of it failed: it asks for no other one.
	Retried string
	// Progress of its hooks: the event, and how many of them have succeeded.
	Progress Progress
	// Loaded says that Objects and Hooks are known.
	Loaded  bool
	Objects []Object
	Hooks   []Hook
	// UID and ResourceVersion of its Secret.
	UID             types.UID
	ResourceVersion string
}

// Progress of the hooks of a record. Clean says that those of the event are over, and
// deleted where they are to be.
type Progress struct {
	Event string
	Done  int
	Clean bool
}

// Rendered is what the chart becomes.
type Rendered struct {
	// Chart is name and version of the chart.
	Chart string
	// Revision that it was rendered as; 0: as any.
	Revision int
	// Objects in the order in which they are created; CRDs are those of crds/.
	Objects, CRDs []Object
	Hooks         []Hook
	// TakesReplicas says that the chart has a value for the number of instances.
	TakesReplicas bool
	Warnings      []string
	// Err says why it could not be rendered; empty: it could.
	Err string
}

// Want is what the release is to be.
type Want struct {
	// App is the application's name, by which its main container is known.
	App string
	// Content is the hash of chart, values and all else that reaches the pods.
	Content string
	// Image, Version, Labels, Annotations and Nodes are made sure of in the workload.
	Image, Version      string
	Labels, Annotations map[string]string
	Nodes               *corev1.NodeSelectorTerm
	// Workload is the name of the object that is scaled; empty: the one that is named as
	// the release, or that is alone.
	Workload string
	// Replicas, MinReadySeconds and MaxUnavailable (nil: as the chart says) are no
	// content.
	Replicas        int32
	MinReadySeconds int32
	MaxUnavailable  *int32
	// Held: no new record is made, and the workload's pods stay as they are.
	Held bool
}

// Input is all that a plan depends on.
type Input struct {
	// Name and Namespace of the release.
	Name, Namespace string
	// Owner is the UID of the AdvDeployment, and OwnerName its name.
	Owner     types.UID
	OwnerName string
	// Want is what the release is to be; nil: it is to go.
	Want *Want
	// Adopt has the release of somebody else taken over.
	Adopt bool
	// Retry asks for another try where a hook failed: any text that is not the one before;
	// empty: nobody asks.
	Retry string
	// Part: an AppSet made the owner, and passes on who asks for another try.
	Part bool
	// SkipHooks has a release go without its hooks.
	SkipHooks bool
	// Records of this name, in any order. Fresh says that they were read after all that is
	// known of the objects: what somebody did by helm is in them.
	Records []Record
	Fresh   bool
	// Rendered is what Plan.Render asked for; nil: it was not asked for yet.
	Rendered *Rendered
	// Objects that Plan.Look asked for; nil: the cluster has none of that name.
	Objects map[Ref]*unstructured.Unstructured
	// Scopes say of each kind of the cluster whether its objects have namespaces. A kind
	// that is not in it does not exist.
	Scopes map[schema.GroupVersionKind]bool
	// Autoscaled says that a HorizontalPodAutoscaler of the cluster names the object.
	Autoscaled map[Ref]bool
	// Anywhere lets charts have objects of the cluster, and of other namespaces.
	Anywhere bool
	// Account is the ServiceAccount by whose rights objects are written.
	Account string
	// Blind says why the records could not be read, and Hidden why objects could not;
	// empty: they could.
	Blind  string
	Hidden map[Ref]string
	// Refused says in the API server's words why it did not take a write.
	Refused map[Ref]string
	// Overruled are the differences that an object had right after it was applied.
	Overruled map[Ref][]string
	// History is how many superseded and failed records are kept.
	History int
	// Now is the time of the decision.
	Now time.Time
}

// Plan is the next step for one release.
type Plan struct {
	// Render, Load and Look ask for what the plan depends on and the input lacks: the
	// rendered chart, the objects and hooks of records, and objects of the cluster.
	// Refresh asks for the records anew: an object that is not as they say may be so
	// because somebody runs helm. As long as one of them is given there are no steps.
	Render  *Render
	Load    []int
	Look    []Ref
	Refresh bool
	// Steps in their order. One that fails ends the turn.
	Steps []Step
	// Waits say what is on its way, Notes what is worth a word, and Stalls what needs help.
	Waits, Notes []string
	Stalls       []Stall
	// Polls are objects that are waited for, and of which no watch tells: they are to be
	// read anew soon.
	Polls []Ref
	// Gone says that nothing is left of a release that is to go.
	Gone bool
	// Numbers of instances.
	Numbers Numbers
	// Taken says that a name is somebody else's.
	Taken bool
}

// Asks says whether the plan depends on what the input lacks.
func (p *Plan) Asks() bool {
	return p.Render != nil || len(p.Load) > 0 || len(p.Look) > 0 || p.Refresh
}

// Render asks for the chart, as this revision of the release.
type Render struct{ Revision int }

// Stall is something that needs help.
type Stall struct{ Reason, Message string }

// Reasons of stalls, beside those of v1beta1.
const (
	// ReasonChart is the reason for a chart that cannot be rendered or used.
	ReasonChart = "ChartError"
	// ReasonHookFailed is the reason for a hook that failed.
	ReasonHookFailed = "HookFailed"
	// ReasonNotAllowed is the reason for an object that charts may not have here.
	ReasonNotAllowed = "NotAllowed"
	// ReasonAmbiguous is the reason for a workload that cannot be told from others.
	ReasonAmbiguous = "AmbiguousWorkload"
	// ReasonNotDone is the reason of events that tell what a chart uses of Helm that is not done.
	ReasonNotDone = "NotDone"
	// ReasonWorkloadFailed is the reason for a workload that says that it failed.
	ReasonWorkloadFailed = "WorkloadFailed"
)

// Numbers of instances of the release's workload.
type Numbers struct {
	Desired, Current, Updated, Ready, Available int32
	// Observed says that the workload's own controller has seen it as it is.
	Observed bool
	// UpToDate says that the wanted record is deployed, and all objects are as it says.
	UpToDate bool
	// Exists says that a record is deployed.
	Exists bool
	// Version is the tag of the main container's image, and Chart name and version of the
	// chart of the record that is in place.
	Version, Chart string
	// Workload is the object that was counted; empty: there is none.
	Workload Ref
}

// Op is what a step does.
type Op string

// The operations.
const (
	// CreateRecord stores a record; UpdateRecord writes its state; DeleteRecord deletes it.
	CreateRecord Op = "CreateRecord"
	UpdateRecord Op = "UpdateRecord"
	DeleteRecord Op = "DeleteRecord"
	// Create applies the manifest if nothing has the name.
	Create Op = "Create"
	// Apply applies the manifest to the very version that was observed.
	Apply Op = "Apply"
	// Delete deletes the object with this UID, and its pods before it.
	Delete Op = "Delete"
)

// Step is one write.
type Step struct {
	Op Op
	// Ref of the object; RecordRef for a record.
	Ref      Ref
	Manifest map[string]any
	// UID and Version of what was observed; empty for Create.
	UID     types.UID
	Version string
	// Record as it is to be.
	Record *Record
	// Warnings of the chart that a new record is made of: what it uses that is not done.
	Warnings []string
	// Why in one sentence.
	Why string
}
