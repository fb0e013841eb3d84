package rollout

import "slices"

// account of a unit as it is seen.
func (c *computation) account(u *Unit) Account { return c.accountOf(u, c.cluster(u).Fresh) }

func (c *computation) accountOf(u *Unit, fresh bool) Account {
	if u.Has == "" && !u.Unseen { // nothing of it can go out of service
		return Account{Desired: u.Replicas, Observed: true, Limit: new(int32(0))}
	}
	a := Account{
		Desired: max(u.Desired, u.Replicas), Unavailable: max(0, u.Desired-u.Available), Remaining: Remaining(u.Desired, u.Current, u.Updated, u.Available),
		Grant: u.Grant, Ceiling: u.Ceiling, Observed: u.Observed, Whole: !fresh && !c.in.Strategy.AsLastSeen, Unproven: c.r.Unproven,
	}
	if !c.r.Budgeted {
		return a
	}
	a.Limit = new(int32(0))
	if b := c.r.boundOf(u.Key); b != nil {
		*a.Limit = b.Bound
		if u.Unseen { // it may have more instances than it is to have
			a.Desired = max(a.Desired, b.Bound)
		}
		a.Pending = b.mayArrive(u)
	}
	return a
}

// record the bounds of all units where something is to be granted: what fell stays so.
func (s *spending) record() {
	if len(s.reserve) == 0 && s.r.Budgeted {
		return
	}
	var bounds []Bound
	for i := range s.in.Units {
		u, bound := &s.in.Units[i], s.before[i]
		if s.accounts[i].Whole {
			bound = s.lastKnown(i)
		}
		b := s.boundToRecord(u, bound)
		if ceiling, reserved := s.reserve[i]; reserved {
			b.Bound, b.Version = ceiling, u.Version
		}
		bounds = append(bounds, b)
	}
	for i := range s.in.Leaving {
		bounds = append(bounds, s.boundToRecord(&s.in.Leaving[i], s.leaving[i].Bound()))
	}
	bounds = slices.DeleteFunc(bounds, func(b Bound) bool { return b.Bound == 0 && b.Version == "" }) // as one that is not recorded
	slices.SortFunc(bounds, func(a, b Bound) int { return a.compare(b.Key) })
	s.r.Budgeted, s.r.Bounds = true, bounds
}

// boundToRecord of a unit, with the version of a write that was reserved and may arrive yet.
func (s *spending) boundToRecord(u *Unit, bound int32) Bound {
	b := Bound{Key: u.Key, Bound: bound}
	if known := s.r.boundOf(u.Key); known != nil && known.mayArrive(u) {
		b.Version = known.Version
	}
	return b
}

// lastKnown bound of a unit that is charged whole.
func (s *spending) lastKnown(i int) int32 {
	return s.account(&s.in.Units[i]).asSeen().Bound()
}
