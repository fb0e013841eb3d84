package v1

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"
)

// WithoutHashLabels copies labels, and leaves out the hashes that the webhook writes
// into templates. They say nothing of their own: a hash that counted them would
// change when it is written, and a selector that named them would select nothing
// after the next update.
func WithoutHashLabels[V any](labels map[string]V) map[string]V {
	out := maps.Clone(labels)
	delete(out, LabelTemplateHash)
	delete(out, LabelUniqHash)
	return out
}

// WithoutVersionLabels copies labels, and leaves out those by which charts and
// controllers name a version: they change with every release. If nothing else is left,
// it returns all.
func WithoutVersionLabels(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return namesVersion(key) })
	if len(out) == 0 {
		return maps.Clone(labels)
	}
	return out
}

func namesVersion(label string) bool {
	switch label {
	case "app.kubernetes.io/version", "helm.sh/chart", "chart", "version", "pod-template-hash", "controller-revision-hash":
		return true
	}
	return false
}

// Unmet are the requirements of a selector that labels do not meet; none of no selector.
func Unmet(selector labels.Selector, has map[string]string) (out []labels.Requirement) {
	if selector == nil {
		return nil
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if !r.Matches(labels.Set(has)) {
			out = append(out, r)
		}
	}
	return out
}
