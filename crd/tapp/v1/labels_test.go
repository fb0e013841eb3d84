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
