package rollout

// Account is what is known of the budget of one unit. All numbers count instances.
//
// The words of the protocol:
//
//	grant    how many of the unit's instances its own controller may have out of service
//	ceiling  a bound of what is voluntarily out of service now, or may be before the unit's
//	         controller follows the next grant. It is written with the grant
//	charge   what the unit uses of the fleet's budget
type Account struct {
	// Desired are the instances that are to run, and Unavailable those of them that are not
	// available, as seen.
	Desired, Unavailable int32
	// Remaining are those that the unit's controller may still take out of service for the
	// content that it follows. Only read if Observed.
	Remaining int32
	// Grant and Ceiling as written; nil: no limit was.
	Grant, Ceiling *int32
	// Observed: the unit's own controller follows the grant and the content as written.
	Observed bool
	// Limit is the bound that the record has of the unit; nil: there is no record of bounds.
	// Others were given what it leaves, so that a bound that fell never rises again without
	// being recorded, such as by an instance that fails by itself.
	Limit *int32
	// Pending: the limit is of a write that may arrive yet, from this process or one that
	// ended.
	Pending bool
	// Whole: nothing is known of the unit, and all of its instances are charged.
	Whole bool
	// Unproven: what is stable has never run in all units. What does not come up locks none out.
	Unproven bool
}

// Bound of the unit's instances that are voluntarily out of service, or may be without
// another write. A grant that was lowered counts until the unit's own controller follows
// it, and what it took out of service before counts until it is seen back.
func (a Account) Bound() int32 {
	bound := a.Desired
	switch {
	case a.Whole || a.Grant == nil && !a.Observed:
	case a.Grant == nil:
		bound = a.Remaining
	case !a.Observed:
		bound = a.ceiling()
	default:
		bound = min(max(*a.Grant, min(a.ceiling(), a.Unavailable)), a.Remaining)
	}
	switch {
	case a.Limit == nil || a.Whole:
	case a.Pending:
		bound = *a.Limit // which was recorded as the higher of what was and what is to be
	default:
		bound = min(bound, *a.Limit)
	}
	return min(bound, a.Desired)
}

// ceiling as written, which is no lower than the grant.
func (a Account) ceiling() int32 {
	if a.Ceiling == nil {
		return a.Desired
	}
	return max(*a.Ceiling, *a.Grant)
}

// Charge of the unit: its bound, or all that is seen unavailable, if that is more.
func (a Account) Charge() int32 { return max(a.Bound(), min(a.Unavailable, a.Desired)) }

// CeilingFor is the ceiling to write with a grant. A write is made to the very version that
// was seen, or not at all: it bounds what was seen.
func (a Account) CeilingFor(grant int32) int32 { return max(grant, a.asSeen().Bound()) }

// asSeen is the account as the unit was seen last. What others are charged because nothing is
// known of it is nothing that it was given.
func (a Account) asSeen() Account {
	a.Whole = false
	return a
}

// Room is the highest grant that one unit may be given, within a budget for all units.
// It may be lower than what the unit has.
//
// Others are charged with what is seen unavailable, as a PodDisruptionBudget does. A
// unit with an unavailable instance may have one out of service where others leave the
// budget room by what is voluntarily so: what fails by itself locks no repair out. So may
// any unit where what is stable is unproven: what never came up locks out nothing that comes
// before its repair. A grant up to the unit's own bound is always allowed, since nothing is
// added by it.
func Room(accounts []Account, unit int, budget int32) int32 {
	var charges, bounds int64
	for i := range accounts {
		if i != unit {
			charges += int64(accounts[i].Charge())
			bounds += int64(accounts[i].Bound())
		}
	}
	return room(&accounts[unit], charges, bounds, budget)
}

func room(a *Account, charges, bounds int64, budget int32) int32 {
	out := max(0, int64(budget)-charges, int64(a.asSeen().Bound()))
	if out == 0 && (a.Unavailable > 0 || a.Unproven) && bounds+1 <= int64(budget) {
		out = 1
	}
	return int32(min(out, int64(a.Desired)))
}

// Remaining instances of a unit that its controller may still take out of service:
// those that are not both updated and available, by one report of its controller.
//
// Of instances beyond the desired ones nobody knows which they are: all of them may be updated
// and available, and go.
func Remaining(desired, current, updated, available int32) int32 {
	beyond := max(0, current-desired)
	return max(0, desired-max(0, updated+available-desired-2*beyond))
}
