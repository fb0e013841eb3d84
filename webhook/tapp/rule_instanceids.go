package tapp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

// judgeInstanceIDs rejects keys of templates and statuses that are no instance ids:
// they would have no effect.
func judgeInstanceIDs(t *tappv1.TApp) field.ErrorList {
	var errs field.ErrorList
	judge := func(name string, keys []string) {
		for _, id := range keys {
			if _, ok := ids.Parse(id); !ok {
				errs = append(errs, field.Invalid(field.NewPath("spec", name).Key(id), id,
					`it is no instance id; ids are whole numbers from 0 without leading zeros, such as "0" or "12"`))
			}
		}
	}
	judge("templates", sortedIDs(t.Spec.Templates))
	judge("statuses", sortedIDs(t.Spec.Statuses))
	return errs
}

// adviseInstanceIDs warns of entries of instances that the TApp does not have.
func adviseInstanceIDs(t, _ *tappv1.TApp) []string {
	var out []string
	has := ids.Of(&t.Spec)
	advise := func(name string, keys []string) {
		var beside []int
		for _, id := range keys {
			if num, ok := ids.Parse(id); ok && !has.Has(num) {
				beside = append(beside, num)
			}
		}
		switch len(beside) {
		case 0:
		case 1:
			out = append(out, fmt.Sprintf("spec.%s: instance %d has an entry, and does not exist while %s", name, beside[0], has.Why()))
		default:
			out = append(out, fmt.Sprintf("spec.%s: instances %s have entries, and do not exist while %s", name, ids.Ranges(beside), has.Why()))
		}
	}
	advise("templates", sortedIDs(t.Spec.Templates))
	advise("statuses", sortedIDs(t.Spec.Statuses))
	return out
}
