package tapp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// judgeOrdinals bounds the ids. (The schema, too, rejects a negative start.)
func judgeOrdinals(t *tappv1.TApp) field.ErrorList {
	if t.Spec.Ordinals == nil || *t.Spec.Replicas < 0 {
		return nil
	}
	path := field.NewPath("spec", "ordinals", "start")
	switch ids := plan.IDsOf(&t.Spec); {
	case ids.Start < 0:
		return field.ErrorList{field.Invalid(path, ids.Start, "it is negative; give 0 or more")}
	case ids.Last() > plan.MaxID:
		return field.ErrorList{field.Invalid(path, ids.Start, fmt.Sprintf(
			"with spec.replicas %d the last id would be %d, and no id is above %d; begin lower", ids.Count, ids.Last(), plan.MaxID))}
	}
	return nil
}
