package main

import (
	"fmt"
	"strings"
)

// role is what the spec wants of an instance.
type role uint8

const (
	rolling role = iota // its template is the one that updates by rolling
	forced              // its template is another one, with the same content
	killed              // spec.statuses says Killed
	beyond              // its id is not below spec.replicas
)

func (r role) String() string { return [...]string{"rolling", "forced", "killed", "scaled down"}[r] }

func (r role) runs() bool { return r == rolling || r == forced }

// place is where a pod is in its life.
type place uint8

const (
	none    place = iota // there is no pod
	pending              // no node yet
	running              // on a node, its container has started
	ended                // Failed or Succeeded
	dying                // being deleted, past its grace period
	foreign              // the name is taken by the pod of somebody else
)

func (p place) String() string {
	return [...]string{"no pod", "pending", "running", "ended", "dying", "foreign pod"}[p]
}

// end of a pod, or of an instance as the stored status remembers it.
type end uint8

const (
	noEnd end = iota
	succeeded
	failed
	rejected // by its kubelet: no container statuses
)

func (e end) String() string { return [...]string{"", "succeeded", "failed", "rejected"}[e] }

// gate is the readiness gate of a pod and its condition.
type gate uint8

const (
	ungated gate = iota
	unset        // the second write of the create was lost
	closed
	open
)

func (g gate) String() string {
	return [...]string{"without gate", "gate unset", "gate closed", "gate open"}[g]
}

// instance is all that the planner can know of one instance. It is comparable, and
// so canonical: versions of images are numbered relative to what the template wants,
// containers by whether they are the last one that started.
type instance struct {
	role role
	// stored is the end that the stored status has of it.
	stored end
	// told: the stored status has the evidence that its node is lost.
	told bool
	pod  pod
}

// pod of an instance.
type pod struct {
	place place
	// version of its spec: 0 is what the template wants now, world.shape() differs in
	// more than the image, and those between in the image only.
	version uint8
	// runs is the version of the image that its last container was started from.
	runs uint8
	gate gate
	// seen: its kubelet has reported the generation of the spec.
	seen bool
	// healthy: its container is ready.
	healthy bool
	// ready is the condition Ready, which its kubelet derives from healthy and gate.
	ready bool
	// aged: it has been ready, or at its end, for longer than anybody waits.
	aged   bool
	end    end
	lost   bool // its node is
	orphan bool // it has no controller
	// forUpdate: the process knows that it deleted the pod for an update. The pod is dying
	// or gone.
	forUpdate bool
	record    record
}

// record is the annotation in which an in-place update keeps what it waits for.
type record struct {
	has bool
	// container that the record names: the last one, an older one, or none yet.
	container container
	// starts since then, at most 3: more than there are candidates.
	starts uint8
	// image and imageID: version plus one; 0 is none.
	image, imageID uint8
	// via is a set of versions.
	via uint8
	// fresh: the patch, or the start of the container, is so young that its kubelet may
	// not have got to act on the patch.
	fresh bool
}

type container uint8

const (
	noContainer container = iota
	olderContainer
	lastContainer
)

func (i instance) String() string {
	words := []string{i.role.String()}
	if i.stored != noEnd {
		words = append(words, "status says "+i.stored.String())
	}
	if i.told {
		words = append(words, "status has evidence")
	}
	return strings.Join(append(words, i.pod.String()), ", ")
}

func (p pod) String() string {
	words := []string{p.place.String()}
	switch p.place {
	case none, foreign:
		if p.forUpdate {
			return words[0] + " for its update"
		}
		return words[0]
	case ended:
		words = append(words, p.end.String())
	case dying:
	default:
		words = append(words, p.gate.String())
		if p.place == running {
			words = append(words, fmt.Sprintf("runs v%d", p.runs))
		}
	}
	if p.place != dying {
		words = append(words, fmt.Sprintf("spec v%d", p.version))
	}
	for _, f := range []struct {
		is   bool
		word string
	}{
		{p.place == running && !p.seen, "unseen"}, {p.healthy, "healthy"}, {p.ready, "Ready"}, {p.place == running && p.ready && !p.aged, "not for long"},
		{p.place == ended && !p.aged, "just now"}, {p.lost, "node lost"}, {p.orphan, "no owner"}, {p.record.has, "record"}, {p.record.fresh, "made just now"},
	} {
		if f.is {
			words = append(words, f.word)
		}
	}
	return strings.Join(words, " ")
}

// isServing says whether the instance serves: it is to run, and its pod is Ready, neither
// dying nor in the middle of an update.
func (i instance) isServing() bool { return i.pod.ready && i.isUninterrupted() }

func (i instance) isUninterrupted() bool {
	p := i.pod
	if !i.role.runs() || i.isCompleted() || p.place != running || p.orphan {
		return false
	}
	if p.gate == ungated {
		return !p.isUpdating()
	}
	return p.gate == open
}

// isAvailable says whether users can count on the instance: it has served for long enough.
func (i instance) isAvailable() bool { return i.isServing() && i.pod.aged }

// isCounted says whether the instance counts as serving in the turns of others: one that has
// its template already only when it is available.
func (i instance) isCounted() bool { return i.isServing() && (i.pod.version != 0 || i.pod.aged) }

// needsRoom says whether to interrupt the instance takes room in the budget. Where its
// containers are ready, its gate is open, and Ready is False, not its kubelet has said so.
func (i instance) needsRoom() bool {
	return i.isServing() || i.isUninterrupted() && i.pod.healthy && !i.pod.isUpdating()
}

// isUpdating says whether the pod has been patched, and the container of the patch
// does not work yet.
func (p pod) isUpdating() bool {
	return p.record.has && !(p.seen && p.runs == p.version && p.healthy)
}

// isCompleted says whether the instance has ended, and stays so: with the policy
// OnFailure, one that succeeded.
func (i instance) isCompleted() bool {
	if !i.role.runs() {
		return false
	}
	switch i.pod.place {
	case ended:
		return i.pod.end == succeeded
	case dying, none:
		return i.stored != noEnd
	}
	return false
}

// isSettled says whether the instance is where the spec wants it.
func (i instance) isSettled() bool {
	p := i.pod
	switch {
	case !i.role.runs():
		return p.place == none
	case i.isCompleted():
		return p.place == none || p.place == ended
	}
	return i.isAvailable() && p.version == 0 && p.runs == 0
}
