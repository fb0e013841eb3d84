package tapp

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/budget"
)

// judgeBudgets rejects budgets with which no update could start.
func judgeBudgets(t *tappv1.TApp) field.ErrorList {
	path := field.NewPath("spec", fieldStrategy)
	s := t.Spec.UpdateStrategy
	var errs field.ErrorList
	judge := func(path *field.Path, b intstr.IntOrString) {
		if budget.Is(b) {
			return
		}
		var value any = b.StrVal
		if b.Type == intstr.Int {
			value = b.IntVal
		}
		why := "no update could start; give a number above 0, or a percentage from 1% to 100%"
		if plain := strings.TrimLeft(b.StrVal, "+0"); budget.Is(intstr.FromString(plain)) {
			why = "it is no percentage as Kubernetes writes them; write " + plain
		}
		errs = append(errs, field.Invalid(path, value, why))
	}
	judge(path.Child("maxUnavailable"), *s.MaxUnavailable)
	judge(path.Child("forceUpdate", "maxUnavailable"), *s.ForceUpdate.MaxUnavailable)
	return errs
}
