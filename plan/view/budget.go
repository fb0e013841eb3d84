package view

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/plan/budget"
)

// Budget is one of the two budgets of updates: as the spec has it, and as the plan
// reads it.
type Budget struct {
	budget.Budget
	field   intstr.IntOrString
	desired int
}

// BudgetOf forced updates, or of rolling ones.
func (o *Observed) BudgetOf(forced bool) Budget {
	s := &o.Spec.UpdateStrategy
	if forced {
		return Budget{o.Plan.Budgets.Forced, *s.ForceUpdate.MaxUnavailable, o.Plan.Desired}
	}
	return Budget{o.Plan.Budgets.Rolling, *s.MaxUnavailable, o.Plan.Desired}
}

// String is "1", or "3 (30% of 10)". It is about the field: a budget that is not valid for
// another reason, such as a rolling template that is missing, is a problem of the plan.
func (b Budget) String() string {
	switch {
	case !budget.Is(b.field):
		return fmt.Sprintf("none (%s is no budget)", b.field.String())
	case b.field.Type == intstr.String:
		return fmt.Sprintf("%d (%s of %d)", b.MaxUnavailable, b.field.StrVal, b.desired)
	}
	return b.field.String()
}
