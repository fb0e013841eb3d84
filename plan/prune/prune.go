// Package prune drops templates that nobody uses.
package prune

import (
	"encoding/json"
	"strings"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/terms"
)

// Templates drops unused templates where no webhook did it. It is the one edit of
// spec that a controller makes: autoDeleteUnusedTemplate asks for nothing else.
func Templates(t *tappv1.TApp) []terms.Action {
	if !t.Spec.AutoDeleteUnusedTemplate {
		return nil
	}
	unused := t.Spec.UnusedTemplates()
	if len(unused) == 0 {
		return nil
	}
	gone := map[string]any{}
	for _, name := range unused {
		gone[name] = nil
	}
	patch, _ := json.Marshal(map[string]any{ // strings always marshal
		"metadata": map[string]any{"uid": t.UID, "resourceVersion": t.ResourceVersion},
		"spec":     map[string]any{"templatePool": gone},
	})
	return []terms.Action{{Op: terms.OpPruneTemplates, Patch: patch, Reason: "TemplatesUnused",
		Why: "spec.autoDeleteUnusedTemplate is true, and nothing names " + strings.Join(unused, ", ")}}
}
