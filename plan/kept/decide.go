package kept

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/ending"
	"tkestack.io/tapp/plan/template"
)

// ReasonRevisionLost says that a pod does not come as it was, since no revision has its template.
const ReasonRevisionLost = "RevisionLost"

// Instance that lacks a pod, or whose pod ended.
type Instance struct {
	ID string
	// Template is the name of its template, and Present the hash of that.
	Template, Present string
	// Had is the hash of the template that it had; empty: not known.
	Had   string
	Cause Cause
	Hold  Hold
}

// Birth is which content the next pod of an instance gets.
type Birth struct {
	// Template of a former revision; nil: the present one.
	Template *Template
	// Reason and Why tell of another content than the present one. Reason may be empty.
	Reason, Why string
	// Unread: revisions have to be read first.
	Unread bool
}

// Decider decides for the instances of one TApp.
type Decider struct {
	// Former templates; nil: they are not read.
	Former *Templates
	// Foresees: nothing is made, so that templates need not be read.
	Foresees bool
	// Selects says whether the TApp's selector matches a template.
	Selects func(*corev1.PodTemplateSpec) bool
	// Serving instances: how many, by the name of their template and the hash that they have.
	Serving map[string]map[string]int
}

// ReasonUnread is the reason of an instance whose next pod is to have a former template, while the
// revisions are not read.
const ReasonUnread = "RevisionUnread"

// CauseOf says why an instance has no pod that runs. The pod is one that ended, or nil. One that was told to
// have failed by itself stays so: what ended can be evicted, or lose its node, afterwards.
func CauseOf(pod *corev1.Pod, had Last, forUpdate, wasKilled bool) Cause {
	switch {
	case ending.FailedByItself(pod), pod != nil && had.Follows:
		return Failed
	case pod != nil:
		return Lost
	case forUpdate:
		return Updated
	case wasKilled || had.Follows:
		return Started // what follows after a failure gets the same
	case had.Hash == "":
		return New
	}
	return Lost
}

// Decide which content the next pod of the instance gets.
func (d *Decider) Decide(i *Instance) Birth {
	if i.Had == i.Present {
		return Birth{} // nothing to roll out
	}
	switch ContentOf(i.Cause, i.Hold) {
	case AsItWas:
		return d.asItWas(i)
	case Usual:
		return d.usual(i)
	case Present:
	}
	return Birth{}
}

// asItWas gives the instance the template with the hash that it had.
func (d *Decider) asItWas(i *Instance) Birth {
	if !template.IsOurs(i.Had) {
		return d.usual(i)
	}
	was, unread := d.find(i.Had)
	switch {
	case unread && !d.Foresees:
		return Birth{Unread: true}
	case was == nil && !unread:
		b := d.usual(i)
		b.Reason = ReasonRevisionLost
		b.Why = "; no revision has the template that it had (hash " + i.Had + ")" + cmp.Or(b.Why, "; it comes with its present template")
		return b
	case i.Hold == NoRoom && !unread && d.isOrdered(i):
		return Birth{}
	}
	return Birth{Template: was, Why: "; it comes as it was (template hash " + i.Had + "), " + i.Hold.why()}
}

// isOrdered says whether the instance was ordered to a template of another name than that by
// which it came to what it had: no budget holds that back.
func (d *Decider) isOrdered(i *Instance) bool {
	name := d.Former.NameOf(i.ID, i.Had)
	return name != "" && name != i.Template
}

// usual gives the instance what most serving instances of its template name run. Of contents
// that equally many run it is the newest one, and where none serves the present one.
func (d *Decider) usual(i *Instance) Birth {
	serving := d.Serving[i.Template]
	if len(serving) == 0 {
		return Birth{}
	}
	number := map[string]int64{i.Present: math.MaxInt64}
	for _, hash := range slices.Sorted(maps.Keys(serving)) {
		was, unread := d.find(hash)
		switch {
		case hash == i.Present:
		case unread && !d.Foresees:
			return Birth{Unread: true}
		case was != nil:
			number[hash] = was.Revision
		case unread:
			number[hash] = 0
		}
	}
	best := i.Present
	for _, hash := range slices.Sorted(maps.Keys(number)) { // those that can be made
		if c := cmp.Or(cmp.Compare(serving[hash], serving[best]), cmp.Compare(number[hash], number[best])); c > 0 {
			best = hash
		}
	}
	if best == i.Present {
		return Birth{}
	}
	was, _ := d.find(best)
	return Birth{Template: was, Why: fmt.Sprintf("; it comes as most serving instances of template %q do (hash %s), %s", i.Template, best, i.Hold.why())}
}

// find the template with a hash; nil: no revision has it, or one that the selector does not
// match any more. Unread: that is not known yet.
func (d *Decider) find(hash string) (t *Template, unread bool) {
	if d.Former == nil {
		return nil, true
	}
	if t = d.Former.Find(hash); t != nil && !d.Selects(t.Spec) {
		return nil, false
	}
	return t, false
}

// LastOf is what status.contents tells of an instance from now on. It is what the instance
// has, or what was told of it before. The pod is the instance's own, or nil.
func LastOf(pod *corev1.Pod, last Last, present string, wasKilled bool) Last {
	switch {
	case pod == nil:
		last.Follows = last.Follows || wasKilled
	case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed:
		last.Follows = last.Follows || ending.FailedByItself(pod)
	}
	if last.Follows && !template.IsOurs(last.Hash) {
		last.Hash = present // nothing else is known that it could come back as
	}
	return last
}
