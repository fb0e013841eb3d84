// Package kept decides which content a pod that is made anew gets while a rollout is
// unfinished, and knows what that takes: which content instances had (status.contents), the
// templates of former revisions, and for how long a pod made as it was keeps its content.
package kept

// Content of a pod that is made anew.
type Content int

const (
	// Present is the instance's template as the spec has it.
	Present Content = iota
	// AsItWas is the template that the instance had, of any name in any revision.
	AsItWas
	// Usual is what most serving instances of the same template name run.
	Usual
)

// Cause is why an instance has no pod.
type Cause int

const (
	// Lost means evicted, deleted by hand, its node is gone, or its kubelet refused it.
	Lost Cause = iota
	// Failed by itself: a container ended with an error, or its image or configuration
	// cannot be had, without a disruption.
	Failed
	// Updated means that TApp deleted it for the update or the restart of the instance.
	Updated
	// New means that nothing is known of an earlier pod.
	New
	// Started again after Killed.
	Started
)

// Hold is what keeps the instance from its update.
type Hold int

const (
	// Free means that its update would have room in the budget if it served.
	Free Hold = iota
	// Paused means that spec.paused is true.
	Paused
	// NoRoom in the budget.
	NoRoom
)

// ContentOf the next pod of an instance whose template changed:
//
//	             paused      free     no room
//	lost         as it was   present  as it was
//	failed       as it was   present  present
//	updated      present     present  present
//	new          usual       present  usual
//	started      as it was   present  present
func ContentOf(c Cause, h Hold) Content {
	switch {
	case h == Free || c == Updated:
		return Present
	case c == New:
		return Usual
	case h == Paused || c == Lost:
		return AsItWas
	}
	return Present
}

// why says in words what holds the instance.
func (h Hold) why() string {
	switch h {
	case Paused:
		return "since spec.paused is true"
	case NoRoom:
		return "since the budget has no room for its update"
	case Free:
	}
	return ""
}
