package tapp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// judgeSizes rejects maps with more entries than any use needs. (So does the schema,
// which callers other than the API server do not ask.)
func judgeSizes(t *tappv1.TApp) field.ErrorList {
	var errs field.ErrorList
	for _, m := range []struct {
		name      string
		has, most int
	}{
		{"templates", len(t.Spec.Templates), tappv1.MaxEntries},
		{"statuses", len(t.Spec.Statuses), tappv1.MaxEntries},
		{fieldPool, len(t.Spec.TemplatePool), tappv1.MaxTemplates},
	} {
		if m.has > m.most {
			errs = append(errs, field.Invalid(field.NewPath("spec", m.name), m.has,
				fmt.Sprintf("it has so many entries, and can have %d; split the TApp into several", m.most)))
		}
	}
	return errs
}
