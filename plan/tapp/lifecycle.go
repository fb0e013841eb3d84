package tapp

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/plan/kept"
	"tkestack.io/tapp/plan/ownership"
)

// adoptAndRelease adopts pods that are ours by name and labels, and releases
// those whose labels stopped matching.
func adoptAndRelease(s *spec, all []*instance) {
	for _, i := range all {
		switch i.state {
		case orphan:
			// Also out of range: what an earlier TApp of this name left is ours to remove.
			i.act(Action{Op: OpAdopt, Pod: i.pod, Patch: ownership.Take(s.tapp, i.pod.UID), Reason: "PodWithoutController",
				Why: "the pod has no controller, and has the name and the labels of the instance"})
		case unmatched:
			i.act(Action{Op: OpRelease, Pod: i.pod, Patch: ownership.Drop(s.tapp, i.pod.UID), Reason: ReasonSelectorMismatch,
				Why: fmt.Sprintf("the labels of the pod no longer match the selector %s", s.selector)})
		case foreign:
			if i.desired() {
				i.wait(reasonNameTaken, whyTaken(i.pod))
			}
		}
	}
}

// whyTaken says whose the pod is that has the name of an instance.
func whyTaken(pod *corev1.Pod) string {
	switch ref := metav1.GetControllerOfNoCopy(pod); {
	case ref != nil:
		return fmt.Sprintf("there is a pod of this name that %s %s controls (UID %s), and the instance waits until it is gone", ref.Kind, ref.Name, ref.UID)
	case pod.DeletionTimestamp != nil:
		return "there is a pod of this name that does not belong to the TApp; it is being deleted"
	}
	return "there is a pod of this name that does not belong to the TApp; delete it, or give it the labels of the instance"
}

// removeUndesired deletes the pods of ids out of range, and of
// stopped ones. That spends no budget.
func removeUndesired(s *spec, c *clock, all []*instance) {
	for _, i := range all {
		if i.inRange && !i.stopped {
			continue
		}
		if n := s.intentOf(i); n.kind == scaleDown || n.kind == stop {
			s.delete(c, i, Action{Reason: n.reason, Why: n.text})
		}
	}
}

// delete deletes the instance's pod for the reasons of the action. Where its node, or
// its claims, must be remembered it first waits until the stored status has what tells
// of them. A pod that keeps the data of a claim stays. It says whether it does.
func (s *spec) delete(c *clock, i *instance, a Action) bool {
	if s.nodeUnrecorded(c, i) || s.claimsUnrecorded(c, i) || s.keepsClaim(i) {
		return false
	}
	a.Op, a.Pod = OpDelete, i.pod
	i.act(a)
	return true
}

// nodeUnrecorded is true while status.nodes, as stored, lacks the node that an
// instance with neverMigrate has run on. Once the pod is gone nothing else could
// tell.
func (s *spec) nodeUnrecorded(c *clock, i *instance) bool {
	if !s.tapp.Spec.NeverMigrate || i.pod.Spec.NodeName == "" || s.tapp.Status.Nodes[i.name] != "" {
		return false
	}
	c.waitFor(recordDelay)
	return true
}

// claimsUnrecorded is true while status.statuses, as stored, does not list an instance
// that is scaled down and whose claims are to follow: they are found by it. A TApp that
// is scaled up and down faster than statuses are written gets there.
func (s *spec) claimsUnrecorded(c *clock, i *instance) bool {
	if i.inRange || !s.claimsFollow() || len(s.tapp.Spec.VolumeClaimTemplates) == 0 {
		return false
	}
	if _, listed := s.tapp.Status.Statuses[i.name]; listed {
		return false
	}
	c.waitFor(recordDelay)
	return true
}

// createMissing creates the pods of instances that are to run and have none.
// That spends no budget.
func createMissing(s *spec, c *clock, t *turns, claims *claims, all []*instance) {
	unrecorded, refused := s.selectorUnrecorded(c), s.createsRefused()
	var first *instance // whose next pod needs the room that its last one leaves
	for _, i := range all {
		if i.state != missing {
			if refused && first == nil && s.keepsRoom(c, i) {
				first = i
			}
			continue
		}
		n := s.intentOf(i)
		switch {
		case n.kind != create:
		case !s.mayCreate(c):
			i.waitForNamespace()
		case unrecorded:
			i.wait("SelectorUnrecorded", "spec.selector is absent, and its pod follows when the status has the selector that is taken from the template's labels")
		case i.isUnread():
			i.waitForRevisions()
		case first != nil:
			i.wait(ReasonRoom, fmt.Sprintf("creations are refused, and instance %s, whose pod goes, comes first", first.name))
		case t.mayBegin(i) && claims.createFor(i):
			i.act(s.birth(c, i, OpCreate, int(s.tapp.Status.Failures[i.name]), n.reason, n.text))
		}
	}
}

// keepsRoom says whether the room of the instance's pod, such as its part of a quota, is
// that of the next one: a pod that goes may use none any more before that can follow. It
// does so until the pod should be gone.
func (s *spec) keepsRoom(c *clock, i *instance) bool {
	if !i.desired() || i.state != terminating || i.pod.DeletionTimestamp == nil {
		return i.state == ended && i.reason == reasonBackoff
	}
	left := i.pod.DeletionTimestamp.Add(unforcedDelay).Sub(c.now)
	if left > 0 {
		c.waitFor(left)
	}
	return left > 0
}

// waitForNamespace: what is created in a terminating namespace is refused.
func (i *instance) waitForNamespace() {
	i.wait("NamespaceTerminating", "its namespace is being deleted, and nothing can be created there")
}

// waitForRevisions: the pod is to have a former template.
func (i *instance) waitForRevisions() {
	i.wait(kept.ReasonUnread, "its pod is to have a former template, and follows when the revisions of the TApp are read")
}

// selectorUnrecorded is true while neither the spec nor the status, as stored, has
// the selector, which is then that of the template's labels. Once there are pods, a
// label added to the template must not have them belong to nobody.
func (s *spec) selectorUnrecorded(c *clock) bool {
	if s.stored.Spec.Selector != nil || s.stored.Status.ScaleLabelSelector != "" || s.selector == nil {
		return false
	}
	c.waitFor(recordDelay)
	return true
}
