package tapp

import (
	"encoding/json"
	"strings"
)

// pruneTemplates drops unused templates where no webhook did it. It is the one edit of
// spec that a controller makes: autoDeleteUnusedTemplate asks for nothing else.
func pruneTemplates(s *spec) []Action {
	if !s.tapp.Spec.AutoDeleteUnusedTemplate {
		return nil
	}
	unused := s.tapp.Spec.UnusedTemplates()
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
