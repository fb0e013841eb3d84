package plugin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	plan "tkestack.io/tapp/plan/tapp"
)

// budget is one of the two budgets of updates: as the spec has it, and as the plan
// reads it.
type budget struct {
	plan.Budget
	field   intstr.IntOrString
	desired int
}

func (o *observed) budget(forced bool) budget {
	s := &o.spec.UpdateStrategy
	if forced {
		return budget{o.plan.Budgets.Forced, *s.ForceUpdate.MaxUnavailable, o.plan.Desired}
	}
	return budget{o.plan.Budgets.Rolling, *s.MaxUnavailable, o.plan.Desired}
}

// String is "1", or "3 (30% of 10)". It is about the field: a budget that is not valid for
// another reason, such as a rolling template that is missing, is a problem of the plan.
func (b budget) String() string {
	switch {
	case !plan.IsBudget(b.field):
		return fmt.Sprintf("none (%s is no budget)", b.field.String())
	case b.field.Type == intstr.String:
		return fmt.Sprintf("%d (%s of %d)", b.MaxUnavailable, b.field.StrVal, b.desired)
	}
	return b.field.String()
}
