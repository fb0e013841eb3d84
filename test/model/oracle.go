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
	case w.Paused && m.Op == plan.OpDrain, w.Paused && m.Op == plan.OpDelete && i.isAvailable():
		return breaks("S2", "%s starts an update while paused", m)
	case w.Policy == tappv1.InPlaceOnly && m.Op == plan.OpDelete && i.role.runs() && p.place == running:
		return breaks("S2", "%s, and it may only be updated in place", m)
	case m.Op == plan.OpUndrain && p.isUpdating():
		return breaks("S5", "%s before the update is done", m)
	}
	return nil
}

// budgets: S2, no more are taken than the budgets let; and no fewer.
func (w *world) budgets(s *state, moves []move) error {
	wanted, available, doubted := 0, 0, 0
	for num := range w.Instances {
		if s[num].role.runs() && !s[num].isCompleted() {
			wanted++
		}
		if s[num].isAvailable() {
			available++
			if s[num].pod.record.fresh && s[num].pod.gate == ungated {
				doubted++ // for all that can be known, its container is about to restart
			}
		}
	}
	var acts, takes [most]bool
	for k := range moves {
		if m := &moves[k]; m.num >= 0 {
			acts[m.num] = true
			takes[m.num] = s[m.num].isAvailable() && (m.Op == plan.OpDrain || m.Op == plan.OpUpdateInPlace || m.Op == plan.OpDelete)
		}
	}
	for _, r := range []role{forced, rolling} {
		budget, taken, waits := unavailable(w.budgetOf(r), wanted), false, -1
		for num := range w.Instances {
			if s[num].role != r {
				continue
			}
			if takes[num] {
				taken = true
				available--
			} else if s[num].isAvailable() && !acts[num] && w.mayChange(s[num].pod) {
				waits = num
			}
		}
		if taken && available < wanted-budget {
			return breaks("S2", "of %d wanted instances %d stay available, and the budget of %s ones is %d", wanted, available, r, budget)
		}
		if waits >= 0 && available-doubted > wanted-budget {
			return breaks("L1", "%s instance %d waits, and of %d wanted ones %d are available, where the budget is %d", r, waits, wanted, available, budget)
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
