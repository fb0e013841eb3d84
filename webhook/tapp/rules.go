package tapp

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/rule"
)

// Rules for TApps, in the order in which they report.
func Rules() rule.Rules[tappv1.TApp] {
	return rule.Rules[tappv1.TApp]{
		{Name: "Name", Judge: judgeName},
		{Name: "Replicas", Judge: judgeReplicas},
		{Name: "ServiceName", Judge: judgeServiceName},
		{Name: "Selector", Judge: judgeSelector},
		{Name: "TemplateNames", Judge: judgeTemplateNames},
		{Name: "TemplateReferences", Judge: judgeTemplateReferences},
		{Name: "InstanceIDs", Judge: judgeInstanceIDs, Advise: adviseInstanceIDs},
		{Name: "Statuses", Judge: judgeStatuses, Advise: adviseStatuses},
		{Name: "Budgets", Judge: judgeBudgets},
		{Name: "Claims", Judge: judgeClaims, Compare: compareClaims},
		{Name: "InitImages", Advise: adviseInitImages},
	}
}

// scaleRules are those that a change of replicas alone can break.
func scaleRules() rule.Rules[tappv1.TApp] { return Rules().Named("Name", "Replicas", "InstanceIDs") }

// namedTemplate is a template with its place.
type namedTemplate struct {
	name string
	path *field.Path
	*corev1.PodTemplateSpec
}

// templatesOf a TApp: the default one, then the pool by name. A pool entry with
// the reserved name is left out; it is never used.
func templatesOf(t *tappv1.TApp) iter.Seq[namedTemplate] {
	return func(yield func(namedTemplate) bool) {
		spec := field.NewPath("spec")
		if !yield(namedTemplate{tappv1.DefaultTemplateName, spec.Child("template"), &t.Spec.Template}) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(t.Spec.TemplatePool)) {
			template := t.Spec.TemplatePool[name]
			if name != tappv1.DefaultTemplateName && !yield(namedTemplate{name, spec.Child("templatePool").Key(name), &template}) {
				return
			}
		}
	}
}

// templateOf returns the template of that name, or nil.
func templateOf(t *tappv1.TApp, name string) *corev1.PodTemplateSpec {
	if name == tappv1.DefaultTemplateName {
		return &t.Spec.Template
	}
	if template, ok := t.Spec.TemplatePool[name]; ok {
		return &template
	}
	return nil
}
