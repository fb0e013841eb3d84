package tapp

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// judgeSelector rejects a selector that does not select every pod of the TApp for
// all of the pod's life. (The schema says that the selector is immutable.)
func judgeSelector(t *tappv1.TApp) field.ErrorList {
	path := field.NewPath("spec", "selector")
	if t.Spec.Selector == nil {
		return field.ErrorList{field.Required(field.NewPath("spec", "template", "metadata", "labels"),
			"the selector is taken from them; give the template a label, such as app: "+t.Name)}
	}
	if errs := validation.ValidateLabelSelector(t.Spec.Selector, validation.LabelSelectorValidationOptions{}, path); len(errs) > 0 {
		return errs
	}
	selector, err := metav1.LabelSelectorAsSelector(t.Spec.Selector)
	if err != nil {
		return field.ErrorList{field.Invalid(path, metav1.FormatLabelSelector(t.Spec.Selector), err.Error()+"; correct the selector")}
	}
	if selector.Empty() {
		return field.ErrorList{field.Required(path, "an empty selector would select every pod of the namespace; name labels that all templates have")}
	}
	if errs := judgeSelectorKeys(path, selector); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	for template := range templatesOf(t) {
		for _, r := range tappv1.Unmet(selector, template.Labels) {
			errs = append(errs, field.Invalid(template.path.Child("metadata", "labels").Key(r.Key()), template.Labels[r.Key()], wayToMatch(t, &r)))
		}
	}
	return errs
}

// wayToMatch says how a template and the selector that its labels do not match get
// together. The label is what the user wants, so that its way comes first.
func wayToMatch(t *tappv1.TApp, r *labels.Requirement) string {
	if t.ResourceVersion == "" { // it is being created
		return fmt.Sprintf("spec.selector has %[2]s, so that the template's pods would not belong to the TApp; leave %[1]s out of spec.selector, or give the template %[2]s", r.Key(), r)
	}
	return fmt.Sprintf("the stored spec.selector has %[2]s and cannot change, so that the template's pods would not belong to the TApp; to have %[1]s change, "+
		"delete the TApp with --cascade=orphan, and create it with a spec.selector without %[1]s: it adopts the running pods", r.Key(), r)
}

// judgeSelectorKeys rejects labels that the controller gives its pods.
func judgeSelectorKeys(path *field.Path, selector labels.Selector) field.ErrorList {
	var errs field.ErrorList
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Key() {
		case tappv1.LabelInstanceID, tappv1.LabelPodIndex:
			errs = append(errs, field.Invalid(path, r.String(), "every instance has its own value of this label; leave it out of the selector, and out of the labels of the templates"))
		case tappv1.LabelTemplateHash, tappv1.LabelUniqHash:
			errs = append(errs, field.Invalid(path, r.String(), "every update changes the value of this label; leave it out of the selector"))
		}
	}
	return errs
}
