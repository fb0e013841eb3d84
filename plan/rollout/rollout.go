// Package rollout decides how a change gets through a fleet: in which order, past which
// gates, and within which budget. It is pure, and knows no kind: a unit is anything that has
// instances and a content, in a cluster.
//
// A rollout is in one of these states:
//
//	Installing   nothing was stable yet: every unit is made, without gates
//	Returning    the content asked for is the stable one: all units at once, without gates
//	Staged       the units of one stage after the other, as concurrency and budget allow
//	Waiting      a stage is done, more work is behind it, and a gate asks for a Confirmation
//	Halted       too much failed: nothing starts, and units in change get budget 0
//	RollingBack  it failed, and returns to the stable content
//	RolledBack   it has returned; the spec still asks for what failed
//	Done         all units have the content, but for those that were passed
//	Unknown      no record says what is stable, and not all that may have it was seen: all
//	             units stay as they are
//
// The budget is in budget.go, what a rollout remembers in record.go, its order in stages.go.
package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// State of a rollout.
type State string

// The states.
const (
	Installing  State = "Installing"
	Returning   State = "Returning"
	Staged      State = "Staged"
	Waiting     State = "Waiting"
	Halted      State = "Halted"
	RollingBack State = "RollingBack"
	RolledBack  State = "RolledBack"
	Done        State = "Done"
	Unknown     State = "Unknown"
)

// Staging is the order and the gates, which a rollout keeps as they were when it began.
type Staging struct {
	// Order of groups, such as canary, blue, green; Canaries are the clusters that come
	// first; Confirm asks for a gate after each stage. They are read where Stages is empty.
	Order    []string `json:"order,omitempty"`
	Canaries []string `json:"canaries,omitempty"`
	Confirm  bool     `json:"confirm,omitempty"`
	// Stages as written.
	Stages []StageSpec `json:"stages,omitempty"`
}

// StageSpec is one stage as written. What is empty selects all.
type StageSpec struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters,omitempty"`
	// Selector of clusters by their labels, in its string form.
	Selector string   `json:"selector,omitempty"`
	Groups   []string `json:"groups,omitempty"`
	// Confirm, Soak and Concurrent of this stage; nil: those of the strategy.
	Confirm    *bool               `json:"confirm,omitempty"`
	Soak       *int32              `json:"soak,omitempty"`
	Concurrent *intstr.IntOrString `json:"concurrent,omitempty"`
}

// Strategy is how the user wants the change to go. Names of clusters are folded.
type Strategy struct {
	Staging
	// Concurrent is how many clusters of a stage change at once: a number, or a percentage,
	// rounded up. Nil: 1.
	Concurrent *intstr.IntOrString
	// MaxUnavailable is the fleet's budget: a number, or a percentage of all instances,
	// rounded up. Nil: none.
	MaxUnavailable *intstr.IntOrString
	// MaxFailures is how many clusters of a stage may fail: a number, or a percentage,
	// rounded down. Nil: 0.
	MaxFailures *intstr.IntOrString
	// Soak is how long a stage that is done must stay well, and Deadline how long a unit may
	// make no progress before it has failed. 0: no deadline.
	Soak, Deadline time.Duration
	// Paused: nothing starts.
	Paused bool
	// Rollback returns to the stable content where a rollout fails.
	Rollback bool
	// AsLastSeen charges silent clusters as they were seen last, and not whole.
	AsLastSeen bool
}

// Cluster is what is known of one cluster.
type Cluster struct {
	// Name, folded, and the labels that selectors of stages go by.
	Name   string
	Labels labels.Set
	// Fresh: what is seen of its units is true now. Ready: and they may be granted more.
	Fresh, Ready bool
	// Maintaining: a human took it out of service. Rollouts pass it.
	Maintaining bool
}

// Key names a unit.
type Key struct{ Cluster, Name string }

// Unit is what a rollout moves.
type Unit struct {
	Key
	Group string
	// Replicas are the instances that it is to have.
	Replicas int32
	// Target is the content that is asked for. Stable is what it has in the stable
	// revision; empty: that knows no such unit. Before is what was asked for when the
	// rollout that is recorded began, or when the unit joined it; empty: nothing.
	Target, Stable, Before string
	Sight
}

// Sight is what was seen of a unit.
type Sight struct {
	// Has is the content that its cluster is asked for; empty: there is no such unit yet.
	Has string
	// Unseen: its cluster may have it, and has not been heard since this process began; or what
	// was left over of it when it was dropped is there yet. What it has is not known then, and
	// all of its instances may be out of service.
	Unseen bool
	// Grant and Ceiling as written into its cluster; nil: none.
	Grant, Ceiling *int32
	// Observed: its own controller follows all of that.
	Observed bool
	// Version of the object that Grant and Ceiling are written into. A write that was
	// reserved for an older one cannot arrive any more.
	Version string
	// Instances. Updated ones have the content that the cluster is asked for.
	Desired, Current, Updated, Available int32
	// Stalled says why it cannot go on without help; empty: it can. What is no fault of the
	// content, such as a node that is lost, is not among it.
	Stalled string
	// Broken: what Stalled says is about this very unit, which is not done then, whatever its
	// numbers say. Otherwise another one in its cluster may be meant.
	Broken bool
	// Progress is how far it was when that was looked at last.
	Progress Progress
}

// Progress of a unit in change. The zero value: it is not measured.
type Progress struct {
	Updated, Available int32
	// At is when it last came nearer.
	At time.Time
}

// Confirmation of a gate.
type Confirmation struct{ Rollout, Stage, Token, By string }

// Input is all that a decision depends on.
type Input struct {
	// UID of the object that is rolled out, and the generation of its spec.
	UID        string
	Generation int64
	// Revision names all targets together.
	Revision string
	Strategy Strategy
	// Clusters and Units in the order in which they are listed.
	Clusters []Cluster
	Units    []Unit
	// Leaving are units that the spec has no more, and that are there yet, in clusters and
	// podSets that it drops: they go on as they are until they are deleted, and what of them
	// may be taken out of service is charged to the budget. Of each, Key, Replicas and Sight
	// are read. What is seen of them is true now; of those that are Unseen, the bound in the
	// record is charged. Those of silent clusters that are dropped are not among them: to drop
	// such a cluster gives back what is reserved for it.
	Leaving []Unit
	// HasStable: there is a stable revision. Stable is its name where no record has one.
	HasStable bool
	Stable    string
	// Record as stored; nil: none.
	Record *Record
	// Ran is that of the last decision.
	Ran           bool
	Confirmations []Confirmation
	// Retry is what asks for another try of a rollout that halted: its id, and anything
	// after a slash to ask again.
	Retry string
	Now   time.Time
}

// Decision is what is to be.
type Decision struct {
	// Record to store. Where Store is true it differs from the stored one, and has to be
	// stored before anything of Units is carried out.
	Record *Record
	Store  bool
	// Stable: the revision of this rollout has become the stable one.
	Stable bool
	State  State
	// Ran: an instance of the installation that is under way was available, now or before. The
	// status keeps it: a record would be a write for it alone.
	Ran bool
	// Stages in their order, and the index of the current one; -1: none.
	Stages  []Stage
	Current int
	Units   []Verdict // as in Input
	// Budget in instances, and what of it is charged; nil: there is none.
	Budget  *int32
	Charged int32
	// Why says in a sentence what the rollout waits for, or why it halted; empty: nothing.
	Why string
	// Wait is when to look again; 0: wait for an event.
	Wait time.Duration
}

// Verdict on one unit.
type Verdict struct {
	// Content that its cluster is to be asked for; empty: it is not to exist yet.
	Content string
	// Grant and Ceiling to write; nil: no limit but the kind's own.
	Grant, Ceiling *int32
	// Reserved: the record allows the write. A write that grants something must not be made
	// without.
	Reserved bool
	// Done: it is where it is to be. Failed: it is not going to be.
	Done, Failed bool
	// Stage by its index; -1: it has no work.
	Stage int
	// Charge is what it uses of the budget.
	Charge int32
	// Why it waits, in a sentence; empty: it does not.
	Why      string
	Progress Progress

	due   bool // it is to get where it is to be now
	early bool // before its turn, since it holds the budget
}

// Compute decides the next step. It never mutates its input; equal inputs give equal
// decisions.
func Compute(in Input) Decision {
	if cluster := in.blind(); cluster != "" {
		return in.unknown(cluster)
	}
	c := newComputation(in)
	c.begin()
	c.judge()
	c.advance()
	c.assign()
	c.spend()
	return c.conclude()
}
