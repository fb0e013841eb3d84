package tapp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// evidenceInterval is how often a node is read again while it looks alive.
const evidenceInterval = 15 * time.Second

// unforcedDelay is how long past its grace period a pod has to hang before the
// state of its node is looked at only to tell of it.
const unforcedDelay = 15 * time.Second

// findLostNodes deletes by force what a lost node keeps from going: only where
// the TApp opted in, the pod is past its grace period, and a live read of its
// node gives evidence. Of a TApp that did not opt in it says what is known.
func (d *decision) findLostNodes() {
	for _, i := range d.instances {
		// A collected pod is about to be gone; it has no time.
		if i.state == dying && i.pod.Spec.NodeName != "" && i.pod.DeletionTimestamp != nil && len(i.actions) == 0 {
			d.findLostNode(i)
		}
	}
}

func (d *decision) findLostNode(i *instance) {
	opted, name := d.tapp.Spec.ForceDeletePod, i.pod.Spec.NodeName
	// The API server stamps a pod with the time at which its grace period ends.
	left := i.pod.DeletionTimestamp.Sub(d.in.Now)
	if !opted {
		left += unforcedDelay
	}
	if left > 0 {
		d.waitFor(left)
		return
	}
	node, known := d.in.Nodes[name]
	if !known {
		d.evidence.add(name)
		d.waitFor(evidenceInterval)
		return
	}
	switch evidence, left := d.lost(node); {
	case evidence == "":
		d.waitFor(left)
		i.hold("NodeNotLost", fmt.Sprintf("its pod is past its grace period, but there is no evidence that node %s is lost", name))
	case !opted:
		d.waitFor(evidenceInterval)
		i.hold("NodeLost", fmt.Sprintf("its pod is past its grace period, and node %s %s; spec.forceDeletePod is false, so that the instance waits until the pod is gone", name, evidence))
	case d.nodeUnrecorded(i):
	case !d.isToldOf(name, evidence):
		d.waitFor(recordDelay)
		i.hold("NodeLost", fmt.Sprintf("its pod is past its grace period, and node %s %s; it is deleted by force once the status says so", name, evidence))
	default:
		i.act(Action{Op: OpForceDelete, Pod: i.pod, Reason: "NodeLost",
			Why: fmt.Sprintf("the pod is past its grace period, and node %s %s", name, evidence)})
	}
}

// isToldOf notes the evidence for the status, and says whether the stored status has
// it. Nothing goes by force before that: an event is told afterwards, if at all, and
// forgotten after an hour.
func (d *decision) isToldOf(node, evidence string) bool {
	words := "node " + node + " " + evidence
	d.lostNodes.add(words)
	c := meta.FindStatusCondition(d.in.TApp.Status.Conditions, tappv1.ConditionForceDeleted)
	return c != nil && c.Status == metav1.ConditionTrue && slices.Contains(strings.Split(c.Message, "; "), words)
}

// concludeLost sets the condition ForceDeleted.
func (d *decision) concludeLost(s *tappv1.TAppStatus, settled bool) {
	if evidence := slices.Sorted(d.lostNodes.all()); len(evidence) > 0 {
		d.set(s, tappv1.ConditionForceDeleted, true, "NodeLost", strings.Join(evidence, "; "))
		return
	}
	if c := meta.FindStatusCondition(s.Conditions, tappv1.ConditionForceDeleted); c != nil && settled {
		d.set(s, tappv1.ConditionForceDeleted, false, "Recovered", c.Message)
	}
}

// collectorMost is how long Kubernetes may take to remove a pod that it called failed
// because its node is gone: it does both at once.
const collectorMost = time.Minute

// removalMost is how long the API server may take to remove a pod that has no grace
// period left: it does so with the request that said so.
const removalMost = 15 * time.Second

// finishDeletions deletes what Kubernetes was about to remove, and did not, because it was
// broken off in between: nobody else would where the node of the pod does not work, or
// one of the same name is back.
func (d *decision) finishDeletions() {
	for _, i := range d.instances {
		if i.state != dying {
			continue
		}
		if i.pod.DeletionTimestamp == nil {
			since, _ := collectedSince(i.pod)
			d.finishDeletion(i, since.Add(collectorMost), "NodeGone", "its node was gone, and Kubernetes did not remove the pod")
			continue
		}
		// The API server stamps a pod, and then removes it: two writes. What the first one left
		// behind goes with the next DELETE, without regard to the grace period of that.
		if grace := i.pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 && len(i.pod.Finalizers) == 0 {
			d.finishDeletion(i, i.pod.DeletionTimestamp.Add(removalMost), "RemovalUnfinished", "it has no grace period left, and the API server did not remove the pod")
		}
	}
}

func (d *decision) finishDeletion(i *instance, due time.Time, reason, why string) {
	if left := due.Sub(d.in.Now); left > 0 {
		d.waitFor(left)
		return
	}
	d.delete(i, reason, why)
}

// lost returns the evidence that a node is lost, or when to look again.
func (d *decision) lost(node NodeState) (string, time.Duration) {
	after := d.in.Policy.NodeLostAfter
	switch gone := d.in.Now.Sub(node.NotReadySince); {
	case !node.Exists:
		return "does not exist any more", 0
	case node.OutOfService:
		return "is tainted node.kubernetes.io/out-of-service", 0
	case node.NotReadySince.IsZero():
		return "", evidenceInterval
	case gone < after:
		return "", min(after-gone, evidenceInterval)
	default:
		return fmt.Sprintf("has not been ready for %s", after), 0
	}
}
