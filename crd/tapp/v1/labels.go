package v1

import "maps"

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
