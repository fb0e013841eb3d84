package advdeployment

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	plan "tkestack.io/tapp/plan/advdeployment"
)

// TestScaledObjects: an autoscaler scales the object of its target's group, whatever version it
// names, and none of another API that has the kind's name.
func TestScaledObjects(t *testing.T) {
	for _, c := range []struct {
		apiVersion, kind string
		child            plan.Kind
		want             bool
	}{
		{"apps/v1", "Deployment", plan.Deployment, true},
		{"apps/v1beta1", "Deployment", plan.Deployment, true},
		{"apps/v1", "StatefulSet", plan.StatefulSet, true},
		{"apps.kruise.io/v1beta1", "StatefulSet", plan.StatefulSet, false},
		{"apps.tkestack.io/v1", "TApp", plan.TApp, true},
		{"other.example/v1", "TApp", plan.TApp, false},
		{"", "Deployment", plan.Deployment, false}, // the autoscaler finds no such kind
		{"apps/v1", "StatefulSet", plan.Deployment, false},
	} {
		autoscaler := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "ns", "name": "a"},
			"spec":     map[string]any{"scaleTargetRef": map[string]any{"apiVersion": c.apiVersion, "kind": c.kind, "name": "web"}},
		}}
		keys, err := indexByTarget(autoscaler)
		if err != nil || len(keys) != 1 {
			t.Fatalf("keys %q, %v", keys, err)
		}
		if got := keys[0] == targetKey(c.child.GroupKind(), "ns", "web"); got != c.want {
			t.Errorf("%s %s scales the %s web: %v, want %v", c.apiVersion, c.kind, c.child, got, c.want)
		}
	}
}
