package budget

import "fmt"

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

// Counts of instances that a budget goes by.
type Counts struct {
	Serving, Available int
}

// Weight is what one instance counts.
type Weight struct {
	Serving, Available bool
}

// Round of a rollout: the instances that share a budget.
type Round struct {
	Forced bool
	Valid  bool // the budget is one
	// Counts of now, of the desired instances; at least so many there must be in each.
	Counts

	Desired, Least int
	// noneAvailable and noneServing are why instances wait for the budget, once it has no
	// room for them. What was taken meanwhile does not change them.
	noneAvailable, noneServing string
}

// HasRoom says whether the budget lets the instance be interrupted.
func (r *Round) HasRoom(w Weight) bool {
	after := r.Without(w)
	return after.Serving >= r.Least && (!w.Available || after.Available >= r.Least)
}

// Without is what would be counted without the instance.
func (r *Round) Without(w Weight) Counts {
	after := r.Counts
	if w.Serving {
		after.Serving--
	}
	if w.Available {
		after.Available--
	}
	return after
}

// WhyNoRoom says why the instance waits for the budget.
func (r *Round) WhyNoRoom(w Weight) string {
	if w.Available {
		if r.noneAvailable == "" {
			r.noneAvailable = fmt.Sprintf("%d of %d instances are available, and at least %d must be", r.Available, r.Desired, r.Least)
		}
		return r.noneAvailable
	}
	if r.noneServing == "" {
		r.noneServing = fmt.Sprintf("%d of %d instances are serving, those that follow their template once they are available, and at least %d must be", r.Serving, r.Desired, r.Least)
	}
	return r.noneServing
}
