package bases_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// TestAPIServerAcceptsCRD runs the validation that the API server runs when a CRD
// is created: structural schema, list-map keys, and the cost of CEL rules.
func TestAPIServerAcceptsCRD(t *testing.T) {
	_, internal := load(t)
	for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
		t.Error(err)
	}
}

// TestSize keeps room for client-side "kubectl apply", which copies the whole CRD
// into an annotation of at most 256 KiB.
func TestSize(t *testing.T) {
	crd, _ := load(t)
	content, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	if limit := 200 * 1000; len(content) > limit {
		t.Errorf("the CRD is %d bytes as JSON, more than %d", len(content), limit)
	}
}

// TestDescriptions: kubectl explain tells about our own fields; the descriptions of
// Kubernetes' fields would make the CRD five times as large.
func TestDescriptions(t *testing.T) {
	crd, _ := load(t)
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
