package main

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// The oracles are written from docs and not from the planner: what must hold of
// every plan in every state.

// judge says what a plan must not do.
func (w *world) judge(s *state, moves []move) error {
	for k := range moves {
		m := &moves[k]
		if m.num < 0 {
			continue
		}
		if err := w.judgeMove(m, s[m.num]); err != nil {
			return err
		}
	}
	return w.budgets(s, moves)
}

func (w *world) judgeMove(m *move, i instance) error {
	p := i.pod
	switch creates := m.Op == plan.OpCreate || m.Op == plan.OpReplace; {
	case p.place == foreign:
		return breaks("S7", "%s touches the pod of another owner", m)
	case p.orphan != (m.Op == plan.OpAdopt):
		return breaks("S7", "%s of a pod with owner: %t", m, !p.orphan)
	case creates && !i.role.runs():
		return breaks("S1", "%s, which is not to run", m)
	case creates && i.isCompleted():
		return breaks("S1", "%s, which has come to its end", m)
	case m.Op == plan.OpCreate && p.place != none, m.Op == plan.OpReplace && p.place != ended:
		return breaks("S1", "%s, which has a pod", m)
	case m.Op == plan.OpForceDelete && !(w.Force && p.place == dying && p.lost && i.told):
		return breaks("S4", "%s without evidence", m)
	case m.Op != plan.OpForceDelete && p.place == dying:
		return breaks("S1", "%s, whose pod is being deleted", m)
	case m.Op == plan.OpUpdateInPlace && p.gate != ungated && (p.gate != closed || p.ready):
		return breaks("S5", "%s before its drain is visible", m)
	case w.Paused && m.Op == plan.OpDrain, w.Paused && m.Op == plan.OpDelete && i.isServing():
		return breaks("S2", "%s starts an update while paused", m)
	case w.Policy == tappv1.InPlaceOnly && m.Op == plan.OpDelete && i.role.runs() && p.place == running:
		return breaks("S2", "%s, and it may only be updated in place", m)
	case m.Op == plan.OpUndrain && p.isUpdating():
		return breaks("S5", "%s before the update is done", m)
	}
	return nil
}

// counts of the instances that a budget goes by.
type counts struct {
	wanted int
	// serving: those that have their template already count when they are available, and the
	// others when they are Ready.
	serving, available int
	// doubted are available, and for all that can be known their containers are about to restart.
	doubted int
}

func (w *world) count(s *state) (c counts) {
	for num := range w.Instances {
		i := s[num]
		if i.role.runs() && !i.isCompleted() {
			c.wanted++
		}
		if i.isCounted() {
			c.serving++
		}
		if i.isAvailable() {
			c.available++
			if i.pod.record.fresh && i.pod.gate == ungated {
				c.doubted++
			}
		}
	}
	return c
}

// without an instance that is interrupted.
func (c *counts) without(i instance) {
	if i.isCounted() {
		c.serving--
	}
	if i.isAvailable() {
		c.available--
	}
}

// budgets: S2, no more are taken than the budgets let, in either count; and no fewer.
func (w *world) budgets(s *state, moves []move) error {
	var acts, takes [most]bool
	for k := range moves {
		if m := &moves[k]; m.num >= 0 {
			acts[m.num] = true
			takes[m.num] = s[m.num].needsRoom() && (m.Op == plan.OpDrain || m.Op == plan.OpUpdateInPlace || m.Op == plan.OpDelete)
		}
	}
	c := w.count(s)
	for _, r := range []role{forced, rolling} {
		budget, serving, available, waits := unavailable(w.budgetOf(r), c.wanted), false, false, -1
		for num := range w.Instances {
			switch i := s[num]; {
			case i.role != r:
			case takes[num]:
				serving, available = true, available || i.isAvailable()
				c.without(i)
			case i.isAvailable() && !acts[num] && w.mayChange(i.pod):
				waits = num
			}
		}
		if serving && c.serving < c.wanted-budget {
			return breaks("S2", "of %d wanted instances %d stay serving, and the budget of %s ones is %d", c.wanted, c.serving, r, budget)
		}
		if available && c.available < c.wanted-budget {
			return breaks("S2", "of %d wanted instances %d stay available, and the budget of %s ones is %d", c.wanted, c.available, r, budget)
		}
		if waits >= 0 && min(c.serving, c.available)-c.doubted > c.wanted-budget {
			return breaks("L1", "%s instance %d waits, and of %d wanted ones %d are available, where the budget is %d", r, waits, c.wanted, c.available, budget)
		}
	}
	return nil
}

func (w *world) budgetOf(r role) intstr.IntOrString {
	if r == forced {
		return w.Forced
	}
	return w.Rolling
}

// unavailable is how many a budget lets be: percentages are rounded up.
func unavailable(b intstr.IntOrString, wanted int) int {
	if b.Type == intstr.Int {
		return int(b.IntVal)
	}
	percent, err := strconv.Atoi(b.StrVal[:len(b.StrVal)-1])
	if err != nil {
		return 0
	}
	n := 1
	for n*100 < percent*wanted {
		n++
	}
	return n
}

// mayChange says whether an outdated pod may be brought to its template.
func (w *world) mayChange(p pod) bool {
	return p.version != 0 && !w.Paused && !(p.version == w.shape() && w.Policy == tappv1.InPlaceOnly)
}

// isHeld says whether the user wants an outdated pod to stay.
func (w *world) isHeld(i instance) bool {
	return i.role.runs() && i.pod.version != 0 && !w.mayChange(i.pod)
}

// judgeRest says what a state in which nothing happens any more must be like.
func (w *world) judgeRest(s *state, in plan.Input, p *plan.Plan) error {
	settled, held := true, false
	for num := range w.Instances {
		i := s[num]
		held = held || w.isHeld(i) && !i.isAvailable()
	}
	for num := range w.Instances {
		i := s[num]
		if i.isSettled() {
			continue
		}
		settled = false
		if w.isHeld(i) || held && i.isAvailable() { // the one that is held spends the budget
			continue
		}
		return breaks("L1", "nothing happens any more, and instance %d is not where the spec wants it", num)
	}
	if settled && p.Wait != 0 {
		return breaks("L1", "all instances are settled, and the plan waits %s for something", p.Wait)
	}
	stored := *in.TApp
	stored.Status = p.Status
	in.TApp = &stored
	again := w.compute(in)
	if len(again.Actions)+len(again.History) > 0 || !equality.Semantic.DeepEqual(again.Status, p.Status) {
		return breaks("L1", "at rest, a second plan writes: %d actions, status changed from %+v to %+v", len(again.Actions)+len(again.History), p.Status, again.Status)
	}
	return nil
}
