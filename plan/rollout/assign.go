package rollout

import (
	"fmt"
	"slices"
	"time"
)

// assign each unit the content that its cluster is to be asked for.
func (c *computation) assign() {
	admitted := c.admitted()
	holding := c.r.Holding
	if c.r.Halted == "" && !c.r.RollingBack {
		c.r.Holding = nil // those that still do are noted again
	}
	for i := range c.in.Units {
		u, v := &c.in.Units[i], &c.verdicts[i]
		v.Content = c.contentOf(u, v, admitted, holding)
		v.due = v.Content != "" && !v.Done && v.Content == c.goal(u) && c.r.Halted == "" && !c.in.Strategy.Paused
		if c.in.Strategy.Paused && u.Has != "" && u.isKnown() && v.Content != u.Has {
			v.Content, v.Why = u.Has, "updateStrategy.paused is true, and nothing starts"
		}
		c.tellEarly(u, v)
	}
}

func (c *computation) contentOf(u *Unit, v *Verdict, admitted map[string]bool, holding []Holder) string {
	switch {
	case c.r.RollingBack:
		if u.Stable == "" {
			return u.Has
		}
		return u.Stable
	case v.Stage < 0:
		return u.Target
	case c.r.Halted != "" && u.Has != "":
		return u.Has
	case c.r.Halted != "":
		return u.Stable
	case c.current < 0 || v.Stage < c.current && c.stages[v.Stage].Record.Passed:
		return u.Target
	case v.Stage == c.current && (admitted[u.Cluster] || u.Has == u.Target):
		return u.Target
	}
	if v.early = c.goesEarly(u, holding); v.early {
		return u.Target
	}
	// It runs the stable content until its turn comes, whatever it got from an earlier
	// rollout: a return needs no gate.
	v.Why = fmt.Sprintf("it waits for stage %s", c.stages[v.Stage].Name)
	if v.Stage == c.current {
		v.Why = fmt.Sprintf("it waits for its turn in stage %s", c.stages[v.Stage].Name)
	}
	if u.Stable == "" || c.isUnproven(u) {
		return u.Has
	}
	return u.Stable
}

// admitted are the clusters of the current stage that may change: as many as may do so at
// once, those first that have begun, and then those that hold the budget.
func (c *computation) admitted() map[string]bool {
	out := map[string]bool{}
	if c.current < 0 || c.r.Halted != "" || c.in.Strategy.Paused {
		return out
	}
	stage := &c.stages[c.current]
	var order []string
	unfinished, begun, holds := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, i := range stage.Units {
		u, v := &c.in.Units[i], &c.verdicts[i]
		if v.Stage != c.current || c.cluster(u).Maintaining {
			continue
		}
		if !slices.Contains(order, u.Cluster) {
			order = append(order, u.Cluster)
		}
		unfinished[u.Cluster] = unfinished[u.Cluster] || !v.Done && !v.Failed
		begun[u.Cluster] = begun[u.Cluster] || u.Has == u.Target
		holds[u.Cluster] = holds[u.Cluster] || c.holdsBudget(u)
	}
	left := stage.Concurrent(len(order))
	admit := func(cluster string) {
		if unfinished[cluster] && !out[cluster] {
			out[cluster] = true
			left--
		}
	}
	for _, cluster := range order {
		if begun[cluster] {
			admit(cluster)
		}
	}
	for _, which := range []map[string]bool{holds, unfinished} {
		for _, cluster := range order {
			if which[cluster] && left > 0 {
				admit(cluster)
			}
		}
	}
	return out
}

// measure the progress of a unit in change, by the clock of this process. It stands while
// nothing is let happen.
func (c *computation) measure(u *Unit, v *Verdict) {
	due := v.due
	if c.cluster(u).Fresh {
		due = due && v.Content == u.Has && (v.Grant == nil || *v.Grant > 0)
	} else if v.Stage < 0 || c.cluster(u).Maintaining {
		due = false // its silence is told anyway
	}
	if !due {
		return
	}
	now := Progress{Updated: u.Updated, Available: u.Available, At: c.in.Now}
	v.Progress = u.Progress
	if v.Progress.At.IsZero() || c.retried || u.advanced() {
		v.Progress = now
	}
	if deadline := c.in.Strategy.Deadline; deadline > 0 && !v.Failed {
		c.soon(v.Progress.At.Add(deadline).Sub(c.in.Now))
	}
}

// soon has the decision be made again after this long at the latest.
func (c *computation) soon(after time.Duration) {
	if after = max(after, time.Second); c.wait == 0 || after < c.wait {
		c.wait = after
	}
}

// countReturning counts in each stage what goes back to the stable content. A unit that has that
// already, and is not well, is none of them unless it is the rollout itself that returns.
func (c *computation) countReturning() {
	for k := range c.stages {
		for _, i := range c.stages[k].Units {
			u := &c.in.Units[i]
			if c.r.Installing || c.verdicts[i].Done || u.Has == "" || c.goal(u) != u.Stable {
				continue
			}
			if c.r.Returning || c.r.RollingBack || u.Has != u.Stable || u.Current > u.Updated {
				c.stages[k].Returning++
			}
		}
	}
}

func (c *computation) conclude() Decision {
	for i := range c.in.Units {
		c.measure(&c.in.Units[i], &c.verdicts[i])
	}
	c.countReturning()
	d := Decision{
		Record: c.r, Store: c.in.Record == nil || !c.r.Equal(c.in.Record), Stable: c.r.Done, State: c.state(),
		Ran:    c.r.Installing && (c.in.Ran || slices.ContainsFunc(c.in.Units, func(u Unit) bool { return u.Available > 0 })),
		Stages: c.stages, Current: c.current, Units: c.verdicts, Budget: c.budget, Charged: c.charged, Why: c.why, Wait: c.wait,
	}
	return d
}

func (c *computation) state() State {
	switch {
	case c.r.RollingBack && c.restored:
		return RolledBack
	case c.r.RollingBack:
		return RollingBack
	case c.r.Halted != "":
		return Halted
	case c.r.Done:
		return Done
	case c.r.Installing:
		return Installing
	case c.current >= 0 && c.stages[c.current].Token != "":
		return Waiting
	case c.current < 0 && c.r.Returning:
		return Returning
	case c.current < 0 && slices.ContainsFunc(c.in.Units, func(u Unit) bool { return u.Has == "" }):
		return Installing
	}
	return Staged
}
