package webhook

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// rule is one thing that a TApp has to keep to. Its functions get TApps with their
// defaults, and change nothing; those that a rule has not got are nil.
type rule struct {
	name string
	// judge finds what is wrong with a TApp as it is.
	judge func(*tappv1.TApp) field.ErrorList
	// compare finds what is wrong with a change.
	compare func(now, was *tappv1.TApp) field.ErrorList
	// advise finds what is allowed, and worth a word; was is nil on creation.
	advise func(now, was *tappv1.TApp) []string
}

// rules in the order in which they are told of.
var rules = []rule{
	{name: "Name", judge: judgeName},
	{name: "Replicas", judge: judgeReplicas},
	{name: "ServiceName", judge: judgeServiceName},
	{name: "Selector", judge: judgeSelector},
	{name: "TemplateNames", judge: judgeTemplateNames},
	{name: "TemplateReferences", judge: judgeTemplateReferences},
	{name: "InstanceIDs", judge: judgeInstanceIDs, advise: adviseInstanceIDs},
	{name: "Statuses", judge: judgeStatuses, advise: adviseStatuses},
	{name: "Budgets", judge: judgeBudgets},
	{name: "Claims", judge: judgeClaims, compare: compareClaims},
	{name: "InitImages", advise: adviseInitImages},
}

// scaleRules are those that a change of replicas alone can break.
var scaleRules = []string{"Name", "Replicas", "InstanceIDs"}

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
