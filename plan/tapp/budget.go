package tapp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/plan/budget"
	"tkestack.io/tapp/plan/problem"
)

// Budgets of updates, as numbers.
type Budgets = budget.Budgets

// budgets as the spec has them.
type budgets struct {
	rolling intstr.IntOrString
	forced  intstr.IntOrString
	// broken is why no update of an available instance may start: updateStrategy
	// names a template that does not exist, so that it cannot be told which
	// instances were meant to roll.
	broken string
}

// readBudgets checks the update strategy.
func (s *spec) readBudgets() {
	u := s.tapp.Spec.UpdateStrategy
	s.rolling, s.forced = *u.MaxUnavailable, *u.ForceUpdate.MaxUnavailable
	s.checkBudget("spec.updateStrategy.maxUnavailable", s.rolling)
	s.checkBudget("spec.updateStrategy.forceUpdate.maxUnavailable", s.forced)
	if s.lookup(u.Template) == nil {
		field := "spec.updateStrategy.template"
		if s.stored.Spec.UpdateStrategy.Template == "" {
			field = "spec.defaultTemplateName"
		}
		s.broken = fmt.Sprintf("%s names %q, which does not exist, so that it cannot be told which instances roll", field, u.Template)
		if u.Template != s.tapp.Spec.DefaultTemplateName { // else it is reported there
			s.problem(problem.Updates, ReasonTemplateMissing, "spec.updateStrategy.template", "there is no template %q; no update starts until spec.templatePool has it, or the field names another one (%s)", u.Template, s.names())
		}
	}
}

func (s *spec) checkBudget(field string, b intstr.IntOrString) {
	if !budget.Is(b) {
		s.problem(problem.Updates, ReasonInvalidSpec, field, "%q allows no update to start; give a number above 0 or a percentage from 1%% to 100%%", b.String())
	}
}

// budgetsOf so many desired instances.
func (s *spec) budgetsOf(desired int) Budgets {
	of := func(b intstr.IntOrString) budget.Budget {
		n, valid := budget.Scale(b, desired)
		return budget.Budget{MaxUnavailable: n, Valid: valid && s.broken == ""}
	}
	return Budgets{Rolling: of(s.rolling), Forced: of(s.forced)}
}

// whyNoBudget says why a budget is not valid.
func (s *spec) whyNoBudget(forced bool) string {
	if s.broken != "" {
		return s.broken
	}
	return "spec.updateStrategy." + map[bool]string{true: "forceUpdate."}[forced] + "maxUnavailable allows no update to start"
}

// isForced says whether the instance updates by force, and not by rolling.
func (s *spec) isForced(i *instance) bool {
	return i.templateName != s.tapp.Spec.UpdateStrategy.Template
}
