package v1

import (
	"maps"
	"testing"
)

// TestWithoutHashLabels: the copy lacks the hashes, and the map keeps them.
func TestWithoutHashLabels(t *testing.T) {
	labels := map[string]any{"app": "web", LabelTemplateHash: "v1-0", LabelUniqHash: 1}
	if got := WithoutHashLabels(labels); !maps.Equal(got, map[string]any{"app": "web"}) || len(labels) != 3 {
		t.Errorf("got %v of %v", got, labels)
	}
	plain := map[string]string{"app": "web"}
	got := WithoutHashLabels(plain)
	if got["app"] = "shop"; plain["app"] != "web" {
		t.Error("the map was not copied")
	}
	if got := WithoutHashLabels[string](nil); got != nil {
		t.Errorf("got %v of no labels", got)
	}
}

// TestWithoutVersionLabels: each label of a version goes, unless nothing else is left.
func TestWithoutVersionLabels(t *testing.T) {
	for _, c := range []struct {
		name         string
		labels, want map[string]string
	}{
		{"none", nil, nil},
		{"no version", map[string]string{"app": "web", "tier": "front"}, map[string]string{"app": "web", "tier": "front"}},
		{"of charts", map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/version": "3.1", "helm.sh/chart": "web-1.4.0"}, map[string]string{"app.kubernetes.io/name": "web"}},
		{"of old charts", map[string]string{"app": "web", "chart": "web-1", "heritage": "Helm"}, map[string]string{"app": "web", "heritage": "Helm"}},
		{"of people", map[string]string{"app": "shop", "version": "v1"}, map[string]string{"app": "shop"}},
		{"of controllers", map[string]string{"app": "web", "pod-template-hash": "5d", "controller-revision-hash": "web-1"}, map[string]string{"app": "web"}},
		{"nothing else", map[string]string{"version": "v1"}, map[string]string{"version": "v1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := maps.Clone(c.labels)
			if got := WithoutVersionLabels(c.labels); !maps.Equal(got, c.want) || !maps.Equal(before, c.labels) {
				t.Errorf("got %v of %v", got, before)
			}
		})
	}
}
