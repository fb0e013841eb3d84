package tapp

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// An instance serves while its pod is Ready, is not terminating, and no interruption of
// ours is under way. It is available when it has served for minReadySeconds. An
// interruption needs room in two counts:
//
//	who is interrupted       serving afterwards >= least   available afterwards >= least
//	available                yes                           yes
//	serving, not available   yes                           -
//	perhaps serving          yes                           -
//	none of these            -                             -
//
// An instance with its new template counts among the serving ones once it is available:
// that is the soak of the new content. Others count by Ready. So a kubelet that renews the
// time of the condition Ready makes nothing free to take.

// counts of instances that a budget goes by.
type counts struct {
	serving, available int
}

// countServing counts the instances that an interruption must leave enough of.
func countServing(all []*instance) counts {
	return counts{
		serving:   count(all, (*instance).countsAsServing),
		available: count(all, func(i *instance) bool { return i.available }),
	}
}

// countsAsServing says whether the turns of others count the instance.
func (i *instance) countsAsServing() bool { return i.serving && (i.available || !i.updated) }

// needsRoom says whether a disruption of the instance needs room in the budget.
func (i *instance) needsRoom() bool { return i.serving || i.mayServe }

// mayRestart says whether the pod is Ready, and only time tells if its kubelet is about to
// restart a container of it.
func (i *instance) mayRestart() bool {
	return i.progress != nil && i.progress.Left > 0 && IsReady(i.pod)
}

// isCalledNotReady says whether somebody else than its kubelet called the pod not Ready: its
// containers are ready, and so are its gates. The node controller does so when a node is
// silent.
func isCalledNotReady(pod *corev1.Pod) bool {
	is := func(kind corev1.PodConditionType) bool {
		for i := range pod.Status.Conditions {
			if pod.Status.Conditions[i].Type == kind {
				return pod.Status.Conditions[i].Status == corev1.ConditionTrue
			}
		}
		return false
	}
	if IsReady(pod) || !is(corev1.ContainersReady) {
		return false
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if !is(gate.ConditionType) {
			return false
		}
	}
	return true
}

// isReadyForLong says whether a pod that is Ready has been so for minReadySeconds.
func (s *spec) isReadyForLong(c *clock, pod *corev1.Pod) bool {
	left := seconds(s.tapp.Spec.MinReadySeconds) - c.now.Sub(Ready(pod).LastTransitionTime.Time)
	if s.tapp.Spec.MinReadySeconds == 0 || left <= 0 {
		return true
	}
	c.waitFor(left)
	return false
}

// round of a rollout: the instances that share a budget.
type round struct {
	forced bool
	valid  bool // the budget is one
	// counts of now, of the desired instances; at least so many there must be in each.
	counts
	desired, least int
	// noneAvailable and noneServing are why instances wait for the budget, once it has no
	// room for them. What was taken meanwhile does not change them.
	noneAvailable, noneServing string
}

// hasRoom says whether the budget lets the instance be interrupted.
func (b *round) hasRoom(i *instance) bool {
	after := b.without(i)
	return after.serving >= b.least && (!i.available || after.available >= b.least)
}

// without is what would be counted without the instance.
func (b *round) without(i *instance) counts {
	after := b.counts
	if i.countsAsServing() {
		after.serving--
	}
	if i.available {
		after.available--
	}
	return after
}

// whyNoRoom says why the instance waits for the budget.
func (b *round) whyNoRoom(i *instance) string {
	if i.available {
		if b.noneAvailable == "" {
			b.noneAvailable = fmt.Sprintf("%d of %d instances are available, and at least %d must be", b.available, b.desired, b.least)
		}
		return b.noneAvailable
	}
	if b.noneServing == "" {
		b.noneServing = fmt.Sprintf("%d of %d instances are serving, those that follow their template once they are available, and at least %d must be", b.serving, b.desired, b.least)
	}
	return b.noneServing
}
