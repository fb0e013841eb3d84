package rollout

import (
	"fmt"
	"slices"
	"time"
)

// While what is stable is unproven, a unit that waits for its turn stays as it is: nobody knows
// whether what is stable would run. Instances that were taken out of service before, and do not
// come back, would use the budget up for good, so that all others wait for it, too. So
//
//	in the current stage  their cluster comes first
//	before their turn     they have what is asked for as soon as they have failed: the unit is
//	                      granted what it holds already, until they are back

// Holder is a unit that holds the budget while it waits for its turn.
type Holder struct {
	Key
	// Available instances of it, and since when there are no more.
	Available int32     `json:"available,omitempty"`
	Since     time.Time `json:"since"`
	// Early: it has failed, and is given what is asked for before its turn.
	Early bool `json:"early,omitempty"`
}

// isUnproven says whether a unit that waits stays as it is, since nobody knows whether what is
// stable would run.
func (c *computation) isUnproven(u *Unit) bool {
	return c.r.Unproven && !c.r.RollingBack && u.Has != ""
}

// holdsBudget says whether instances of a unit were taken out of service and did not come back, and
// only what is asked for can repair them: what is stable is unproven.
func (c *computation) holdsBudget(u *Unit) bool {
	if !c.isUnproven(u) || c.in.Strategy.MaxUnavailable == nil || u.Available >= u.Desired {
		return false
	}
	a := c.account(u)
	return a.asSeen().Bound() > 0
}

// goesEarly says whether a unit that waits for its turn is given what is asked for before, and notes
// that it holds the budget, if it does. Before is what was noted of all units.
func (c *computation) goesEarly(u *Unit, before []Holder) bool {
	if !c.holdsBudget(u) {
		return false
	}
	h, deadline := Holder{u.Key, u.Available, c.in.Now, false}, c.in.Strategy.Deadline
	if i := slices.IndexFunc(before, func(h Holder) bool { return h.Key == u.Key }); i >= 0 && (before[i].Available >= u.Available || before[i].Early) {
		h = before[i]
	}
	if c.cluster(u).Fresh && !h.Early {
		left := h.Since.Add(deadline).Sub(c.in.Now)
		h.Early = u.isStalled() || deadline > 0 && left <= 0
		if deadline > 0 && !h.Early {
			c.soon(left)
		}
	}
	c.r.Holding = append(c.r.Holding, h)
	return h.Early && !c.in.Strategy.Paused
}

// atMost is a grant that a unit may have: before its turn no more than it holds.
func (s *spending) atMost(i int, grant int32) int32 {
	if s.verdicts[i].early {
		return min(grant, s.accounts[i].asSeen().Bound())
	}
	return grant
}

// tellEarly says of the whole rollout that a unit does not wait for its turn.
func (c *computation) tellEarly(u *Unit, v *Verdict) {
	if v.early && c.why == "" {
		c.why = fmt.Sprintf("%s does not wait for stage %s: it holds the budget, and its instances do not come back without what is asked for", u.Key, c.stages[v.Stage].Name)
	}
}
