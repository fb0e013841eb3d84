package tapp

import (
	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/budget"
	"tkestack.io/tapp/plan/unready"
)

// countServing counts the instances that an interruption must leave enough of.
func countServing(all []*instance) budget.Counts {
	return budget.Counts{
		Serving:   count(all, (*instance).countsAsServing),
		Available: count(all, func(i *instance) bool { return i.available }),
	}
}

// countsAsServing says whether the turns of others count the instance. A new template soaks from its hash on.
func (i *instance) countsAsServing() bool {
	return i.serving && (i.available || !i.hasTemplate())
}

// weight is what the instance counts for the turns of others.
func (i *instance) weight() budget.Weight {
	return budget.Weight{Serving: i.countsAsServing(), Available: i.available}
}

// needsRoom says whether a disruption of the instance needs room in the budget.
func (i *instance) needsRoom() bool { return i.serving || i.mayServe }

// mayRestart says whether the pod is Ready, and only time tells if its kubelet is about to
// restart a container of it.
func (i *instance) mayRestart() bool {
	return i.progress != nil && i.progress.Left > 0 && unready.IsReady(i.pod)
}

// isReadyForLong says whether a pod that is Ready has been so for minReadySeconds.
func (s *spec) isReadyForLong(c *clock, pod *corev1.Pod) bool {
	left := seconds(s.tapp.Spec.MinReadySeconds) - c.now.Sub(unready.Ready(pod).LastTransitionTime.Time)
	if s.tapp.Spec.MinReadySeconds == 0 || left <= 0 {
		return true
	}
	c.waitFor(left)
	return false
}
