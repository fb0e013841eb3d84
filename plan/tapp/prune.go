package tapp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// UnusedTemplates are the names of the pool's entries that neither an instance,
// nor defaultTemplateName, nor updateStrategy.template names, in alphabetical
// order.
func UnusedTemplates(t *tappv1.TApp) []string { return unusedTemplates(&defaulted(t).Spec) }

func unusedTemplates(defaulted *tappv1.TAppSpec) []string {
	used := set{}
	used.add(defaulted.DefaultTemplateName)
	used.add(defaulted.UpdateStrategy.Template)
	for _, name := range defaulted.Templates {
		used.add(name)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(defaulted.TemplatePool)), func(name string) bool {
		_, is := used[name]
		return is
	})
}

// pruneTemplates drops unused templates where no webhook did it. It is the one
// edit of spec that a controller makes: autoDeleteUnusedTemplate asks for nothing
// else.
func pruneTemplates(s *spec) []Action {
	if !s.tapp.Spec.AutoDeleteUnusedTemplate {
		return nil
	}
	unused := unusedTemplates(&s.tapp.Spec)
	if len(unused) == 0 {
		return nil
	}
	gone := map[string]any{}
	for _, name := range unused {
		gone[name] = nil
	}
	patch, _ := json.Marshal(map[string]any{ // strings always marshal
		"metadata": map[string]any{"uid": s.tapp.UID, "resourceVersion": s.tapp.ResourceVersion},
		"spec":     map[string]any{"templatePool": gone},
	})
	return []Action{{Op: OpPruneTemplates, Patch: patch, Reason: "TemplatesUnused",
		Why: "spec.autoDeleteUnusedTemplate is true, and nothing names " + strings.Join(unused, ", ")}}
}
