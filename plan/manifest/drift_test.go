package manifest

import (
	"slices"
	"testing"
)

func TestDrift(t *testing.T) {
	manifest := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "1"},
		"spec": map[string]any{"n": int64(1), "limits": map[string]any{"cpu": "1000m", "memory": int64(1024)}, "text": "1000m"},
	}
	for name, c := range map[string]struct {
		have map[string]any
		want []string
	}{
		"the same, spelled otherwise": {map[string]any{
			"kind": "other", "status": map[string]any{"x": "y"}, "data": map[string]any{"a": "1", "b": "2"},
			"spec": map[string]any{"n": 1.0, "limits": map[string]any{"cpu": "1", "memory": "1Ki"}, "text": "1000m"},
		}, nil},
		"data drifted": {map[string]any{"data": map[string]any{"a": "2"},
			"spec": map[string]any{"n": int64(1), "limits": map[string]any{"cpu": "1", "memory": "1Ki"}, "text": "1"}},
			[]string{"data.a is 2 instead of 1", "spec.text is 1 instead of 1000m"}},
		"quantities differ": {map[string]any{"data": map[string]any{"a": "1"},
			"spec": map[string]any{"n": int64(2), "limits": map[string]any{"cpu": "2", "memory": "x"}, "text": "1000m"}},
			[]string{"spec.limits.cpu is 2 instead of 1000m", "spec.limits.memory is x instead of 1024", "spec.n is 2 instead of 1"}},
	} {
		if got := Drift(manifest, c.have); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
