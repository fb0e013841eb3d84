package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"tkestack.io/tapp/plan/inplace"

	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	budgets "tkestack.io/tapp/plan/budget"
	plan "tkestack.io/tapp/plan/tapp"
)

// TestSmallSpaces: no violation in any state of the small spaces.
func TestSmallSpaces(t *testing.T) {
	if err := run(t.Context(), io.Discard, small(), 2); err != nil {
		t.Error(err)
	}
}

// TestBites: a planner that is wrong is found out, by a way that is as short as can be.
func TestBites(t *testing.T) {
	edited := func(edit func(*tappv1.TApp)) func(plan.Input) plan.Plan {
		return func(in plan.Input) plan.Plan {
			in.TApp = in.TApp.DeepCopy()
			edit(in.TApp)
			return plan.Compute(in)
		}
	}
	without := func(ops ...plan.Op) func(plan.Input) plan.Plan {
		return func(in plan.Input) plan.Plan {
			p := plan.Compute(in)
			var left []plan.Action
			for _, a := range p.Actions {
				for _, op := range ops {
					if a.Op != op {
						left = append(left, a)
					}
				}
			}
			p.Actions = left
			return p
		}
	}
	for _, x := range []struct {
		name    string
		compute func(plan.Input) plan.Plan
		rule    string
		why     string
		steps   int
	}{
		{"a budget that is one too large", edited(func(t *tappv1.TApp) { t.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(2)) }),
			"S2", "of 2 wanted instances 0 stay serving, and the budget of rolling ones is 1", 3},
		{"stopped instances run", edited(func(t *tappv1.TApp) { t.Spec.Statuses = nil }),
			"S1", "Create 0 (PodMissing), which is not to run", 1},
		{"gates stay closed", without(plan.OpUndrain),
			"L1", "nothing happens any more, and instance 0 is not where the spec wants it", 1},
		{"pods go by force", func(in plan.Input) plan.Plan {
			p := plan.Compute(in)
			for k := range p.Actions {
				if p.Actions[k].Op == plan.OpDelete {
					p.Actions[k].Op = plan.OpForceDelete
				}
			}
			return p
		}, "S4", "ForceDelete 1 (Killed) without evidence", 2},
		{"what is well is drained", func(in plan.Input) plan.Plan {
			p := plan.Compute(in)
			if i := p.Instances; len(i) == 2 && p.Status.AvailableReplicas == 2 && p.Status.UpdatedReplicas == 2 {
				p.Actions = append(p.Actions, plan.Action{Op: plan.OpDrain, ID: i[0].ID, Pod: i[0].Pod, Reason: "Whim",
					Status: inplace.GatePatch(inplace.Target{UID: i[0].Pod.UID}, false, "Whim", "", in.Now)})
			}
			return p
		}, "L1", "an instance goes in circles:", 2},
	} {
		c := space(2, "1", "1")
		coarse(&c)
		_, err := Explore(c, x.compute)
		var v violation
		if !errors.As(err, &v) || v.rule != x.rule || !strings.HasPrefix(v.why, x.why) {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if steps := strings.Count(err.Error(), ". "); steps != x.steps {
			t.Errorf("%s: %d steps\n%v", x.name, steps, err)
		}
	}
}

// TestPercentages: every percentage is one of those that are explored, for each
// number of instances.
func TestPercentages(t *testing.T) {
	classes := map[[most]int]bool{}
	class := func(b intstr.IntOrString) (out [most]int) {
		for wanted := 1; wanted <= most; wanted++ {
			out[wanted-1], _ = budgets.Scale(b, wanted)
			if want := unavailable(b, wanted); out[wanted-1] != want {
				t.Errorf("%s of %d are %d, not %d", b.String(), wanted, out[wanted-1], want)
			}
		}
		return out
	}
	for _, p := range percentages() {
		classes[class(budget(p))] = true
	}
	for percent := 1; percent <= 100; percent++ {
		if b := budget(fmt.Sprintf("%d%%", percent)); !classes[class(b)] {
			t.Errorf("%s is like none that is explored", b.String())
		}
	}
}
