package advdeployment

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// judgeUnits rejects what the planner cannot make podSets of.
func judgeUnits(a *v1beta1.AdvDeployment) (errs field.ErrorList) {
	_, _, problems := podset.Placed(a)
	for _, p := range problems {
		errs = append(errs, field.Invalid(field.NewPath(p.Field), field.OmitValueType{}, p.Why))
	}
	return errs
}

// adviseUnits warns of what has not the effect that it seems to have.
func adviseUnits(a, _ *v1beta1.AdvDeployment) (out []string) {
	_, notes, _ := podset.Placed(a)
	for _, n := range notes {
		out = append(out, n.Field+": "+n.Why)
	}
	return out
}
