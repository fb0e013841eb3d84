package tapp

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Budgets of updates, as numbers.
type Budgets struct {
	// Rolling is for the instances of spec.updateStrategy.template, Forced for all
	// others.
	Rolling, Forced Budget
}

// Budget is how many instances may be unavailable because of updates.
type Budget struct {
	// MaxUnavailable of the desired instances; percentages are rounded up.
	MaxUnavailable int
	// Valid is false where the spec's value is no budget: then no update of an
	// available instance starts.
	Valid bool
}

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
			s.problem(concernsUpdates, ReasonTemplateMissing, "spec.updateStrategy.template", "there is no template %q; no update starts until spec.templatePool has it, or the field names another one (%s)", u.Template, s.names())
		}
	}
}

func (s *spec) checkBudget(field string, b intstr.IntOrString) {
	if !IsBudget(b) {
		s.problem(concernsUpdates, ReasonInvalidSpec, field, "%q allows no update to start; give a number above 0 or a percentage from 1%% to 100%%", b.String())
	}
}

// budgetsOf so many desired instances.
func (s *spec) budgetsOf(desired int) Budgets {
	budget := func(b intstr.IntOrString) Budget {
		n, valid := Scale(b, desired)
		return Budget{MaxUnavailable: n, Valid: valid && s.broken == ""}
	}
	return Budgets{Rolling: budget(s.rolling), Forced: budget(s.forced)}
}

// whyNoBudget says why a budget is not valid.
func (s *spec) whyNoBudget(forced bool) string {
	switch {
	case s.broken != "":
		return s.broken
	case forced:
		return "spec.updateStrategy.forceUpdate.maxUnavailable allows no update to start"
	default:
		return "spec.updateStrategy.maxUnavailable allows no update to start"
	}
}

// isForced says whether the instance updates by force, and not by rolling.
func (s *spec) isForced(i *instance) bool {
	return i.templateName != s.tapp.Spec.UpdateStrategy.Template
}

// Scale returns how many of total instances a budget lets be unavailable at a
// time: percentages are rounded up, and it is at least 1. It is false for a value
// that is no budget, such as +5% or 005%, which other readers take for something else.
func Scale(b intstr.IntOrString, total int) (int, bool) {
	if b.Type == intstr.Int {
		return int(b.IntVal), b.IntVal > 0
	}
	digits, ok := strings.CutSuffix(b.StrVal, "%")
	percent, err := strconv.Atoi(digits)
	if !ok || err != nil || percent < 1 || percent > 100 || strconv.Itoa(percent) != digits {
		return 0, false
	}
	return max(1, (total*percent+99)/100), true
}

// IsBudget says whether a budget allows updates to start: a number above 0, or a
// percentage from 1% to 100%.
func IsBudget(b intstr.IntOrString) bool {
	_, ok := Scale(b, 100)
	return ok
}
