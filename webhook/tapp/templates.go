package tapp

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

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

// hasTemplate is whether there is a template of that name.
func hasTemplate(t *tappv1.TApp, name string) bool {
	_, ok := t.Spec.TemplatePool[name]
	return ok || name == tappv1.DefaultTemplateName
}

// sameTemplate says whether two templates make the same pods.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	return b != nil && same(a.Spec, b.Spec) && same(a.Annotations, b.Annotations) && same(tappv1.WithoutHashLabels(a.Labels), tappv1.WithoutHashLabels(b.Labels))
}

// same says whether two values mean the same. Most do because they are equal in
// every respect, which is found out several times as fast.
func same[T any](a, b T) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b)
}
