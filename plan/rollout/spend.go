package rollout

// Budget is how many of so many instances may be unavailable at once, if there is a MaxUnavailable: 1 at least.
func (s *Strategy) Budget(instances int) int32 {
	return int32(max(1, scaled(s.MaxUnavailable, instances, true, 1)))
}

// spend the budget: units that go on first, in their order, then those that start.
func (c *computation) spend() {
	if c.in.Strategy.MaxUnavailable == nil {
		c.unlimited()
		return
	}
	total := 0
	for i := range c.in.Units {
		total += int(c.in.Units[i].Replicas)
	}
	budget := c.in.Strategy.Budget(total)
	c.budget = &budget
	s := newSpending(c, budget)
	for i := range c.in.Units {
		if v := &c.verdicts[i]; v.Content == c.in.Units[i].Has {
			s.goOn(i)
		}
	}
	for i := range c.in.Units {
		if c.verdicts[i].Content != c.in.Units[i].Has {
			s.start(i)
		}
	}
	s.record()
	s.tellSilence()
	for i := range c.verdicts {
		c.verdicts[i].Charge = s.accounts[i].Charge()
		c.charged += c.verdicts[i].Charge
	}
	for i := range s.leaving {
		c.charged += s.leaving[i].Bound()
	}
}

// unlimited leaves units the default of their kind. Those that failed are held back.
func (c *computation) unlimited() {
	c.r.Budgeted, c.r.Bounds = false, nil
	for i := range c.in.Units {
		u, v := &c.in.Units[i], &c.verdicts[i]
		v.Reserved = true
		switch {
		case v.Content != u.Has && u.Has != "" && !c.cluster(u).Ready && u.isKnown():
			v.Content, v.Why = u.Has, "its cluster does not answer well, and nothing starts there"
		case c.isHeldBack(u, v), c.staysHeld(u, v):
			v.Grant, v.Ceiling = new(int32(0)), u.Ceiling
		case v.Content == u.Has && u.Grant != nil && *u.Grant > 0 && v.Done: // it is not worth a write
			v.Grant, v.Ceiling = u.Grant, u.Ceiling
		}
	}
}

// isKnown says whether a unit has what some rollout gave it.
func (u *Unit) isKnown() bool { return u.Has == u.Target || u.Has == u.Stable || u.Has == u.Before }

// isHeldBack says whether a unit is in change to what failed: it stops where it is.
func (c *computation) isHeldBack(u *Unit, v *Verdict) bool {
	return c.r.Halted != "" && !c.r.RollingBack && v.Stage >= 0 && u.Has != "" && u.Has != u.Stable && !v.Done
}

// staysHeld says whether a unit that was held back is done by now, while the rollout stands
// still: to let it go is a write, after which it is not known to be done, and held back again.
func (c *computation) staysHeld(u *Unit, v *Verdict) bool {
	return c.r.Halted != "" && !c.r.RollingBack && v.Content == u.Has && u.Grant != nil && *u.Grant == 0
}

// spending of a budget.
type spending struct {
	*computation
	budget          int32
	accounts        []Account
	charges, bounds int64
	excess          int64 // by which grants exceed a budget that was lowered
	reserve         map[int]int32
	before          []int32   // bounds as they were found
	leaving         []Account // of units that leave: nothing is granted to them
	silence         string    // tells what of the budget silent clusters use; empty: nothing
	short           string    // why a unit waits for the budget; empty: none does
}

func newSpending(c *computation, budget int32) *spending {
	s := &spending{computation: c, budget: budget, reserve: map[int]int32{}}
	for i := range c.in.Units {
		a := c.account(&c.in.Units[i])
		s.accounts = append(s.accounts, a)
		s.before = append(s.before, a.Bound())
		s.charges, s.bounds = s.charges+int64(a.Charge()), s.bounds+int64(a.Bound())
		if u := &c.in.Units[i]; c.verdicts[i].Content == u.Has && u.Grant != nil && c.isInChange(i) {
			s.excess += int64(*u.Grant)
		}
	}
	s.excess -= int64(budget)
	s.silence = s.silenceOf()
	for i := range c.in.Leaving {
		a := c.accountOf(&c.in.Leaving[i], true)
		s.leaving = append(s.leaving, a)
		// What fails there besides holds nobody up: it is to go.
		s.charges, s.bounds = s.charges+int64(a.Bound()), s.bounds+int64(a.Bound())
	}
	return s
}

// isInChange says whether the controller of a unit may still take instances out of
// service for the content that it has.
func (c *computation) isInChange(i int) bool {
	u := &c.in.Units[i]
	return u.Has != "" && !c.verdicts[i].Done && (!u.Observed || u.Current > u.Updated)
}

// room for the grant of a unit.
func (s *spending) room(i int) int32 {
	a := &s.accounts[i]
	return room(a, s.charges-int64(a.Charge()), s.bounds-int64(a.Bound()), s.budget)
}

// write a grant, with a ceiling that bounds what is out of service until it is followed.
func (s *spending) write(i int, grant int32) {
	u, v, a := &s.in.Units[i], &s.verdicts[i], &s.accounts[i]
	ceiling := a.CeilingFor(grant)
	v.Grant, v.Ceiling = &grant, &ceiling
	s.charges, s.bounds = s.charges-int64(a.Charge()), s.bounds-int64(a.Bound())
	b := s.r.boundOf(u.Key)
	v.Reserved = grant == 0 || u.Has == "" || s.r.Budgeted && b != nil && b.Version == u.Version && b.Bound >= ceiling
	if grant > 0 && u.Has != "" {
		a.Limit, a.Pending = &ceiling, true
		if !v.Reserved {
			s.reserve[i] = ceiling
		}
	}
	s.charges, s.bounds = s.charges+int64(a.Charge()), s.bounds+int64(a.Bound())
}

// goOn with a unit that keeps its content.
func (s *spending) goOn(i int) {
	u, v, a := &s.in.Units[i], &s.verdicts[i], &s.accounts[i]
	v.Grant, v.Ceiling, v.Reserved = u.Grant, u.Ceiling, true
	held := int32(0)
	if u.Grant != nil {
		held = *u.Grant
	}
	want := a.Desired
	if u.Observed {
		want = min(a.Remaining, a.Desired)
	}
	want = s.atMost(i, want)
	switch {
	case s.isHeldBack(u, v):
		s.stop(i)
	case s.isUnproven(u) && (v.Content != u.Target || v.Why != "") && s.isInChange(i):
		s.stop(i)
	case !s.isInChange(i):
		s.withdraw(i)
	case s.excess > 0 && held > 0:
		cut := min(int64(held), s.excess)
		s.excess -= cut
		s.write(i, min(held-int32(cut), s.room(i))) // a grant bounds no less than itself, until it is followed
	case s.stands(u):
	default:
		limit := min(s.room(i), want)
		switch {
		case u.Grant == nil && limit > 0, limit > held && (limit >= 2*held || limit == want):
			s.write(i, limit)
		case u.Grant == nil:
			s.write(i, 0)
		case held == 0 && limit == 0:
			v.Why = s.exhausted()
		}
	}
}

// stop a unit where it is.
func (s *spending) stop(i int) {
	if grant := s.in.Units[i].Grant; grant == nil || *grant > 0 {
		s.write(i, 0)
	}
}

// stands says whether a unit that goes on is granted no more now. One that is broken and has no
// grant is not observed before it has one: it has nothing to try again with.
func (s *spending) stands(u *Unit) bool {
	stuck := u.Broken && u.Grant != nil && *u.Grant == 0
	return s.in.Strategy.Paused || !s.cluster(u).Ready || !u.Observed && !stuck
}

// withdraw a reservation whose write was not made, and is not wanted any more: as long as it
// could arrive, its room is nobody's. Any write to the unit ends that, and one of a grant of
// 0 needs no reservation. After the rollout nobody waits for the room.
func (s *spending) withdraw(i int) {
	u, v, a := &s.in.Units[i], &s.verdicts[i], &s.accounts[i]
	if !a.Pending || s.r.Done || s.in.Strategy.Paused || !s.cluster(u).Ready {
		return
	}
	s.write(i, 0)
	if u.Grant != nil && *u.Grant == 0 && u.Ceiling != nil && *u.Ceiling == *v.Ceiling { // nothing would be written
		*v.Ceiling++
	}
}

// start another content in a unit, or have it wait.
func (s *spending) start(i int) {
	u, v := &s.in.Units[i], &s.verdicts[i]
	switch {
	case v.Content == "":
		v.Reserved = true
		return
	case u.Unseen: // what is there stops where it is, until it is seen
		s.write(i, 0)
		return
	case u.Has == "": // nothing of it can go out of service
		v.Reserved = true
		return
	}
	limit := s.atMost(i, min(s.room(i), s.accounts[i].Desired))
	switch {
	case u.Replicas == 0 && u.Desired == 0 || !u.isKnown() && !(s.r.Unproven && limit == 0): // nothing to take out of service, or put right at once
		s.write(i, limit)
	case !s.cluster(u).Ready:
		s.hold(i, "its cluster does not answer well, and nothing starts there")
	case limit == 0:
		s.hold(i, s.exhausted())
		v.due = false // its deadline is no use while others have the budget
	default:
		s.write(i, limit)
	}
}

// hold a unit at what it has.
func (s *spending) hold(i int, why string) {
	u, v := &s.in.Units[i], &s.verdicts[i]
	v.Content, v.Grant, v.Ceiling, v.Reserved, v.Why = u.Has, u.Grant, u.Ceiling, true, why
}
