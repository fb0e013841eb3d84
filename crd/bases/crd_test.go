package bases_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"tkestack.io/tapp/crd/bases"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestAPIServerAcceptsCRD runs the validation that the API server runs when a CRD
// is created: structural schema, list-map keys, and the cost of CEL rules.
func TestAPIServerAcceptsCRD(t *testing.T) {
	for _, kind := range kinds(t) {
		_, internal := load(t, kind)
		for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestSize keeps room for client-side "kubectl apply", which copies the whole CRD
// into an annotation of at most 256 KiB.
func TestSize(t *testing.T) {
	for _, kind := range kinds(t) {
		crd, _ := load(t, kind)
		content, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		if limit := 200 * 1000; len(content) > limit {
			t.Errorf("the CRD of %s is %d bytes as JSON, more than %d", kind, len(content), limit)
		}
	}
}

// kinds that have a CRD.
func kinds(t *testing.T) []string {
	t.Helper()
	crds, err := bases.CRDs()
	if err != nil || len(crds) == 0 {
		t.Fatalf("%d CRDs, %v", len(crds), err)
	}
	out := make([]string, 0, len(crds))
	for _, crd := range crds {
		out = append(out, crd.Spec.Names.Kind)
	}
	return out
}

// TestDescriptions: kubectl explain tells about our own fields; the descriptions of
// Kubernetes' fields would make the CRD five times as large.
func TestDescriptions(t *testing.T) {
	crd, _ := load(t, tappv1.Kind)
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	for name, property := range spec.Properties {
		if property.Description == "" {
			t.Errorf("spec.%s has no description", name)
		}
	}
	for name, property := range spec.Properties["updateStrategy"].Properties {
		if property.Description == "" {
			t.Errorf("spec.updateStrategy.%s has no description", name)
		}
	}
	if d := spec.Properties["template"].Properties["spec"].Description; d != "" {
		t.Errorf("spec.template.spec has a description: %q", d)
	}
}
