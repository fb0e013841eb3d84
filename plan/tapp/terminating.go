package tapp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ending"
	"tkestack.io/tapp/plan/evidence"
	"tkestack.io/tapp/plan/message"
)

const (
	// unforcedDelay is how long past its grace period a pod has to hang before the
	// state of its node is looked at only to tell of it.
	unforcedDelay = 15 * time.Second
)

// lostNodes is what a plan has to do with nodes.
type lostNodes struct {
	// unread are the nodes that the next plan needs a live read of.
	unread set
	// evidence by which pods are deleted by force, in words.
	evidence set
	// held are the instances that wait since nothing may be deleted by force.
	held evidence.Held
}

// followTerminating says what terminating pods wait for, finishes deletions that were
// broken off, and deletes by force what a lost node keeps from going.
func followTerminating(s *spec, c *clock, in *Input, all []*instance) lostNodes {
	var lost lostNodes
	for _, i := range all {
		if i.state != terminating {
			continue
		}
		if s.tapp.DeletionTimestamp == nil {
			if i.desired() {
				i.wait("Terminating", "its pod is being deleted, and the next one follows when it is gone")
			}
			if s.finishDeletion(c, i) {
				continue
			}
		}
		// A pod that Kubernetes is about to remove has no deletionTimestamp yet.
		if i.pod.Spec.NodeName != "" && i.pod.DeletionTimestamp != nil {
			s.followNode(c, i, in, &lost)
		}
	}
	return lost
}

// followNode deletes by force only where the TApp opted in, the pod is past its grace
// period, and a live read of its node gives evidence. Of a TApp that did not opt in it
// says what is known.
func (s *spec) followNode(c *clock, i *instance, in *Input, lost *lostNodes) {
	opted, name := s.tapp.Spec.ForceDeletePod, i.pod.Spec.NodeName
	if grace := i.pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 && len(i.pod.Finalizers) > 0 {
		// No evidence could make it go: to delete it once more would change nothing.
		c.waitFor(evidence.Interval)
		i.wait("HeldByFinalizers", "its pod has no grace period left, and stays until its finalizers are gone: "+message.Quote(strings.Join(i.pod.Finalizers, ", ")))
		return
	}
	// The API server stamps a pod with the time at which its grace period ends.
	left := i.pod.DeletionTimestamp.Sub(c.now)
	if !opted {
		left += unforcedDelay
	}
	if left > 0 {
		c.waitFor(left)
		return
	}
	node, known := in.Nodes[name]
	if !known {
		lost.unread.add(name)
		c.waitFor(evidence.Interval)
		if node, known = in.NodesBefore[name]; opted || !known {
			if told := evidence.Holds(s.told(tappv1.ConditionStalled), name); !opted && told != "" {
				lost.hold(i, told) // what is told holds until the node is read again
			}
			return
		}
	}
	switch words, left := node.Lost(name, c.now, s.policy.NodeLostAfter); {
	case words == "":
		c.waitFor(left)
		i.wait("NodeNotLost", fmt.Sprintf("its pod is past its grace period, but there is no evidence that node %s is lost", name))
	case !opted:
		c.waitFor(evidence.Interval)
		lost.hold(i, words)
	case s.nodeUnrecorded(c, i):
	case !s.isRecorded(lost, words):
		c.waitFor(recordDelay)
		i.wait(ReasonNodeLost, "its pod is past its grace period, and "+words+"; it is deleted by force once the status says so")
	default:
		i.act(Action{Op: OpForceDelete, Pod: i.pod, ResourceVersion: i.pod.ResourceVersion, Reason: ReasonNodeLost,
			Why: "the pod is past its grace period, and " + words})
	}
}

// hold has an instance wait, and notes that for the status.
func (l *lostNodes) hold(i *instance, words string) {
	l.held.Add(words, i.id)
	i.wait(ReasonNodeLost, "its pod is past its grace period, and "+words+"; spec.forceDeletePod is false, so that the instance waits until the pod is gone")
}

// isRecorded notes the evidence for the status, and says whether the stored status has
// it. Nothing goes by force before that: an event is told afterwards, if at all, and
// forgotten after an hour.
func (s *spec) isRecorded(lost *lostNodes, words string) bool {
	lost.evidence.add(words)
	return slices.Contains(s.told(tappv1.ConditionForceDeleted), words)
}

// told is what a condition, as stored, tells of nodes that are lost.
func (s *spec) told(condition string) []string {
	return evidence.Told(s.stored.Status.Conditions, condition)
}

// finishDeletion deletes what Kubernetes was about to remove, and did not, see
// ending.Unfinished. It says whether it does.
func (s *spec) finishDeletion(c *clock, i *instance) bool {
	due, reason, why := ending.Unfinished(i.pod)
	left := due.Sub(c.now)
	switch {
	case reason == "":
		return false
	case left > 0:
		c.waitFor(left)
		return false
	}
	return s.delete(c, i, Action{Reason: reason, Why: why})
}
