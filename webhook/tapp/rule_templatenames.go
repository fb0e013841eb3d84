package tapp

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// judgeTemplateNames rejects template names that are no DNS labels.
func judgeTemplateNames(t *tappv1.TApp) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "templatePool")
	for _, name := range slices.Sorted(maps.Keys(t.Spec.TemplatePool)) {
		switch {
		case name == tappv1.DefaultTemplateName:
			errs = append(errs, field.Invalid(path.Key(name), name, "this name belongs to spec.template; give the template another one"))
		case len(validation.IsDNS1123Label(name)) > 0:
			errs = append(errs, field.Invalid(path.Key(name), name,
				"a template's name has lower case letters, digits and dashes, at most 63, and begins and ends with a letter or digit; rename it, such as canary or v2"))
		}
	}
	return errs
}
