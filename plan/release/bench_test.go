package release

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// BenchmarkInstall440KB decides about a release of 880 objects until all of them are
// there, and once more when they are: beside rendering, and writing its record, that is
// what applying costs without the API server.
func BenchmarkInstall440KB(b *testing.B) {
	var made []Object
	for i := range 880 {
		made = append(made, Object{Source: "web/templates/all.yaml", Content: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint("web-", i), "labels": map[string]any{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "blue"}},
			"data": map[string]any{"text": strings.Repeat("0123456789", 32)},
		}})
	}
	for b.Loop() {
		w := newWorld(b, &Rendered{Objects: made})
		w.settle = func(Ref, *unstructured.Unstructured) {}
		if p := w.run(); len(w.objects) != 880 || !p.Numbers.Exists {
			b.Fatal(len(w.objects), p.Stalls)
		}
	}
}
