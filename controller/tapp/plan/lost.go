package plan

import (
	"fmt"
	"time"
)

// evidenceInterval is how often a node is read again while it looks alive.
const evidenceInterval = 15 * time.Second

// findLostNodes deletes by force what a lost node keeps from going: only where
// the TApp opted in, the pod is past its grace period, and a live read of its
// node gives evidence.
func (d *decision) findLostNodes() {
	if !d.tapp.Spec.ForceDeletePod {
		return
	}
	for _, i := range d.instances {
		if i.state != dying || i.pod.Spec.NodeName == "" {
			continue
		}
		// The API server stamps a pod with the time at which its grace period ends.
		if left := i.pod.DeletionTimestamp.Sub(d.in.Now); left > 0 {
			d.waitFor(left)
			continue
		}
		node, known := d.in.Nodes[i.pod.Spec.NodeName]
		if !known {
			d.evidence.add(i.pod.Spec.NodeName)
			d.waitFor(evidenceInterval)
			continue
		}
		evidence, left := d.lost(node)
		if evidence == "" {
			d.waitFor(left)
			i.hold("NodeNotLost", fmt.Sprintf("its pod is past its grace period, but there is no evidence that node %s is lost", i.pod.Spec.NodeName))
			continue
		}
		i.act(Action{Op: OpForceDelete, Pod: i.pod, Reason: "NodeLost",
			Why: fmt.Sprintf("the pod is past its grace period, and node %s %s", i.pod.Spec.NodeName, evidence)})
	}
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
