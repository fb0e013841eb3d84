package tapp

import (
	"time"

	"tkestack.io/tapp/plan/budget"
	"tkestack.io/tapp/plan/inplace"
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

// mayServeYet says whether the pod is Ready, and only time tells if it stays so: its kubelet may
// be about to restart a container of it, or to answer that its gate was closed before.
func (i *instance) mayServeYet(opening inplace.Progress) bool {
	return unready.IsReady(i.pod) && (i.progress != nil && i.progress.Left > 0 || !i.updating && opening.Left > 0)
}

// waits says whether there is time left to wait for, and has the controller look again then.
func (c *clock) waits(left time.Duration) bool {
	if left > 0 {
		c.waitFor(left)
	}
	return left > 0
}
