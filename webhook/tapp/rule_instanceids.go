package tapp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// judgeInstanceIDs rejects keys of templates and statuses that are no instance ids:
// they would have no effect.
func judgeInstanceIDs(t *tappv1.TApp) field.ErrorList {
	var errs field.ErrorList
	judge := func(name string, ids []string) {
		for _, id := range ids {
			if _, ok := plan.ParseID(id); !ok {
				errs = append(errs, field.Invalid(field.NewPath("spec", name).Key(id), id,
					`it is no instance id; ids are whole numbers from 0 without leading zeros, such as "0" or "12"`))
			}
		}
	}
	judge("templates", sortedIDs(t.Spec.Templates))
	judge("statuses", sortedIDs(t.Spec.Statuses))
	return errs
}

// adviseInstanceIDs warns of entries above spec.replicas.
func adviseInstanceIDs(t, _ *tappv1.TApp) []string {
	var out []string
	advise := func(name string, ids []string) {
		var above []int
		for _, id := range ids {
			if num, ok := plan.ParseID(id); ok && num >= int(*t.Spec.Replicas) {
				above = append(above, num)
			}
		}
		switch len(above) {
		case 0:
		case 1:
			out = append(out, fmt.Sprintf("spec.%s: instance %d has an entry, and does not exist while spec.replicas is %d", name, above[0], *t.Spec.Replicas))
		default:
			out = append(out, fmt.Sprintf("spec.%s: instances %s have entries, and do not exist while spec.replicas is %d", name, plan.Ranges(above), *t.Spec.Replicas))
		}
	}
	advise("templates", sortedIDs(t.Spec.Templates))
	advise("statuses", sortedIDs(t.Spec.Statuses))
	return out
}
