package tapp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

// judgeOrdinals bounds the ids. (The schema, too, rejects a negative start.)
func judgeOrdinals(t *tappv1.TApp) field.ErrorList {
	if t.Spec.Ordinals == nil || *t.Spec.Replicas < 0 {
		return nil
	}
	path := field.NewPath("spec", "ordinals", "start")
	switch has := ids.Of(&t.Spec); {
	case has.Start < 0:
		return field.ErrorList{field.Invalid(path, has.Start, "it is negative; give 0 or more")}
	case has.Last() > ids.Max:
		return field.ErrorList{field.Invalid(path, has.Start, fmt.Sprintf(
			"with spec.replicas %d the last id would be %d, and no id is above %d; begin lower", has.Count, has.Last(), ids.Max))}
	}
	return nil
}
