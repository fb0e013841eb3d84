package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const goldenHashes = "testdata/hash/golden.txt"

// TestGoldenHashes freezes the hash scheme. A hash that changes here changes on
// every pod of every cluster that runs such a template, and an upgrade of this
// program would restart them all (the original's fault 11). So:
//
//	NEVER CHANGE A LINE OF golden.txt. Change the code back.
//
// New templates may be added; the test prints the line that is missing. A scheme
// that has to differ gets another prefix than v1-, keeps this one for the pods
// that carry it, and compares field by field to get from one to the other.
func TestGoldenHashes(t *testing.T) {
	golden := readGolden(t)
	for _, name := range hashTemplates(t) {
		raw := readTree(t, name)
		hashes, err := HashRaw(raw)
		shape, shapeErr := shapeOfTree(raw)
		if err = errors.Join(err, shapeErr); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		line := hashes.Template + " " + hashes.Uniq + " " + shape
		switch want, ok := golden[name]; {
		case !ok:
			t.Errorf("no golden hash yet; add to %s:\n%s %s", goldenHashes, name, line)
		case want != line:
			t.Errorf("%s: the hashes are %s, and were %s: this would restart pods. Read the comment of this test", name, line, want)
		}
		delete(golden, name)
	}
	for name := range golden {
		t.Errorf("%s: the template of a golden hash is gone", name)
	}
}

// TestGoldenTemplatesTyped: through the Kubernetes types the hash is the same,
// also after a round trip through their own JSON.
func TestGoldenTemplatesTyped(t *testing.T) {
	for _, name := range hashTemplates(t) {
		if name == "newer-than-us" {
			continue // what the types do not know is lost in them
		}
		raw, err := HashRaw(readTree(t, name))
		shape, shapeErr := shapeOfTree(readTree(t, name))
		if err = errors.Join(err, shapeErr); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		spec := readTemplate(t, name)
		before := spec.DeepCopy()
		for trip := range 2 {
			typed, err := Hash(spec)
			if err != nil || typed != raw {
				t.Errorf("%s, trip %d: Hash %v, %v; HashRaw %v", name, trip, typed, err, raw)
			}
			if got := typed.Shape(spec); got != shape {
				t.Errorf("%s, trip %d: shape hash %s, through the types %s", name, trip, shape, typed.Shape(spec))
			}
			text, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			if !jsonEqual(t, spec, before) {
				t.Errorf("%s: hashing changed the template", name)
			}
			spec = &corev1.PodTemplateSpec{}
			if err := json.Unmarshal(text, spec); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestGoldenRelations: what the names of the golden templates promise.
func TestGoldenRelations(t *testing.T) {
	golden := readGolden(t)
	if golden["spelling-plain"] != golden["spelling-other"] {
		t.Error("two spellings of one template hash differently")
	}
	a, b := strings.Fields(golden["images-only-a"]), strings.Fields(golden["images-only-b"])
	if a[0] == b[0] || a[1] != b[1] {
		t.Errorf("other images should change the template hash alone: %v %v", a, b)
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(golden)) {
		hash := strings.Fields(golden[name])[0]
		if other, ok := seen[hash]; ok && name != "spelling-plain" {
			t.Errorf("%s and %s hash alike", name, other)
		}
		seen[hash] = name
		if !IsOurs(hash) {
			t.Errorf("%s: %q is not of our scheme", name, hash)
		}
	}
}

// TestGoldenTemplatesCoverTheSchema: each field of the schema is set in a golden
// template, so that its rule is frozen.
func TestGoldenTemplatesCoverTheSchema(t *testing.T) {
	covered := map[string]bool{}
	var visit func(typeName string, s *node, v any)
	names := map[string]string{} // fields map identity to type name
	for typeName, fields := range schema() {
		names[fmt.Sprintf("%p", fields)] = typeName
	}
	visit = func(typeName string, s *node, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, member := range v {
				switch s.kind {
				case kindObject:
					typeName := names[fmt.Sprintf("%p", s.fields)]
					covered[typeName+"."+key] = true
					visit(typeName, s.field(key), member)
				case kindMap:
					visit("", s.elem, member)
				}
			}
		case []any:
			for _, e := range v {
				if s.kind == kindList {
					visit("", s.elem, e)
				}
			}
		}
	}
	for _, name := range hashTemplates(t) {
		visit("PodTemplateSpec", schemaType("PodTemplateSpec"), readTree(t, name))
	}
	for typeName, fields := range schema() {
		for field := range fields {
			if !covered[typeName+"."+field] {
				t.Errorf("no golden template sets %s.%s", typeName, field)
			}
		}
	}
}

func hashTemplates(t *testing.T) []string {
	files, err := filepath.Glob("testdata/hash/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
	}
	return files
}

func readTree(t testing.TB, name string) map[string]any {
	text, err := os.ReadFile("testdata/hash/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err = yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return decodeTree(t, text)
}

// decodeTree keeps numbers as they are written.
func decodeTree(t testing.TB, text []byte) map[string]any {
	var tree map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func readTemplate(t testing.TB, name string) *corev1.PodTemplateSpec {
	text, err := os.ReadFile("testdata/hash/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	template := &corev1.PodTemplateSpec{}
	if err := yaml.Unmarshal(text, template); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return template
}

func readGolden(t *testing.T) map[string]string {
	text, err := os.ReadFile(goldenHashes)
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, hashes, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			golden[name] = hashes
		}
	}
	return golden
}

func jsonEqual(t *testing.T, a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}
