// Package servedschema holds the controller of a kind while the API server serves a schema of
// it that lost fields which objects use: an API server leaves lost fields out of what it
// answers, and erases them from the store by the next write, of a status or a label too.
package servedschema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Fields are the paths below spec that a schema has: "replicas", "template.spec.containers[].image".
// A map's values are below "*".
type Fields map[string]struct{}

// maxDepth bounds how deep a schema is walked. Those of our kinds have 13 levels.
const maxDepth = 64

// parseFields reads the fields of a kind from an OpenAPI v3 document of its group and version.
func parseFields(document []byte, kind schema.GroupVersionKind) (Fields, error) {
	var doc spec3.OpenAPI
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document of %s: %w", kind.GroupVersion(), err)
	}
	if doc.Components == nil {
		return nil, fmt.Errorf("the OpenAPI document of %s has no schemas", kind.GroupVersion())
	}
	for _, s := range doc.Components.Schemas {
		if !isOfKind(s, kind) {
			continue
		}
		specSchema, ok := s.Properties["spec"]
		if !ok {
			return nil, fmt.Errorf("the served schema of %s has no spec", kind.Kind)
		}
		out := Fields{}
		out.addBelow(&specSchema, "", maxDepth)
		return out, nil
	}
	return nil, fmt.Errorf("the OpenAPI document of %s has no schema of %s", kind.GroupVersion(), kind.Kind)
}

func isOfKind(s *spec.Schema, kind schema.GroupVersionKind) bool {
	kinds, _ := s.Extensions["x-kubernetes-group-version-kind"].([]any)
	return slices.ContainsFunc(kinds, func(one any) bool {
		k, _ := one.(map[string]any)
		return k["group"] == kind.Group && k["version"] == kind.Version && k["kind"] == kind.Kind
	})
}

func (f Fields) addBelow(s *spec.Schema, path string, depth int) {
	if depth == 0 {
		return
	}
	for name := range s.Properties {
		property := s.Properties[name]
		below := join(path, name)
		f[below] = struct{}{}
		f.addBelow(&property, below, depth-1)
	}
	if s.Items != nil && s.Items.Schema != nil {
		f.addBelow(s.Items.Schema, path+"[]", depth-1)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		f.addBelow(s.AdditionalProperties.Schema, join(path, "*"), depth-1)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// addUsed adds to used those fields that the value of a spec has.
func (f Fields) addUsed(used Fields, value any, path string) {
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			below := join(path, name)
			if _, known := f[below]; known {
				used[below] = struct{}{}
			} else {
				below = join(path, "*")
			}
			f.addUsed(used, one, below)
		}
	case []any:
		for _, one := range value {
			f.addUsed(used, one, path+"[]")
		}
	}
}

// Missing are the fields that other lacks, in order; of those below one another the highest.
func (f Fields) Missing(other Fields) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(f)) {
		if _, has := other[path]; has || len(out) > 0 && isBelow(path, out[len(out)-1]) {
			continue
		}
		out = append(out, path)
	}
	return out
}

func isBelow(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}

// Digest names these fields, whatever their order.
func (f Fields) Digest() string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(f)), "\n")))
	return hex.EncodeToString(sum[:8])
}

func newFields(paths []string) Fields {
	out := make(Fields, len(paths))
	for _, path := range paths {
		out[path] = struct{}{}
	}
	return out
}
