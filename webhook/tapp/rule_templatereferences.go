package tapp

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

// judgeTemplateReferences rejects names of templates that do not exist.
func judgeTemplateReferences(t *tappv1.TApp) field.ErrorList {
	s, path := &t.Spec, field.NewPath("spec")
	var errs field.ErrorList
	names := sync.OnceValue(s.DescribeTemplates) // once for all that are missing
	missing := func(at *field.Path, name string) {
		if name == "" || hasTemplate(t, name) {
			return
		}
		e := field.NotFound(at, name)
		e.Detail = "there is no such template; add it to spec.templatePool, or name another one (" + names() + ")"
		errs = append(errs, e)
	}
	missing(path.Child(fieldTemplateName), s.DefaultTemplateName)
	if s.UpdateStrategy.Template != s.DefaultTemplateName { // otherwise it is reported already
		missing(path.Child(fieldStrategy, "template"), s.UpdateStrategy.Template)
	}
	for _, id := range sortedIDs(s.Templates) {
		if _, ok := ids.Parse(id); !ok {
			continue // rule InstanceIDs rejects the entry
		}
		missing(path.Child("templates").Key(id), s.Templates[id])
	}
	return errs
}

// sortedIDs are the keys of a map of instances: short numbers before long ones.
func sortedIDs[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
}
