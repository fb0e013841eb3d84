package manifest

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

func read(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		name, manifest, object string
		want                   []string
	}{
		{"equal", `{spec: {a: 1, b: [x]}}`, `{spec: {a: 1, b: [x]}}`, nil},
		{"what it does not mention", `{spec: {a: 1}}`, `{spec: {a: 1, b: 2}, status: {c: 3}}`, nil},
		{"a zero that JSON leaves out", `{spec: {a: "", b: null, c: 0}}`, `{spec: {}}`, nil},
		{"other and missing", `{metadata: {labels: {l: m}}, spec: {a: 1, b: 2}}`, `{spec: {a: 3}}`,
			[]string{"metadata is missing", "spec.a is 3 instead of 1", "spec.b is missing"}},
		{"containers by name", `{spec: {c: [{name: a, image: x}, {name: b, image: q}]}}`, `{spec: {c: [{name: b, image: z}, {name: a, image: x}]}}`,
			[]string{"spec.c[b].image is z instead of q"}},
		{"one volume mounted twice", `{spec: {m: [{name: v, mountPath: /a}, {name: v, mountPath: /b}]}}`, `{spec: {m: [{name: v, mountPath: /a}, {name: v, mountPath: /b}]}}`, nil},
		{"ports by number and protocol", `{spec: {p: [{port: 53, protocol: UDP, name: d}, {port: 53, name: t}]}}`, `{spec: {p: [{port: 53, protocol: TCP, name: t}, {port: 53, protocol: UDP, name: d}]}}`, nil},
		{"a list without keys", `{spec: {args: [a, b]}}`, `{spec: {args: [a]}}`, []string{"spec.args[1] is missing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			object := read(t, c.object)
			var got []string
			for _, key := range []string{"metadata", "spec"} {
				got = append(got, different(key, read(t, c.manifest)[key], object[key])...)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestStamp: a field that leaves a manifest is a difference by the stamp alone, and other
// annotations stay.
func TestStamp(t *testing.T) {
	more := Stamp(read(t, `{metadata: {name: a, annotations: {b: c}}, spec: {x: 1, y: 2}}`), "stamp")
	less := Stamp(read(t, `{metadata: {name: a, annotations: {b: c}}, spec: {x: 1}}`), "stamp")
	again := Stamp(read(t, `{metadata: {name: a, annotations: {b: c}}, spec: {x: 1}}`), "stamp")
	stamp := func(m map[string]any) any { return At(m, "metadata", "annotations", "stamp") }
	if stamp(more) == stamp(less) || stamp(less) != stamp(again) || At(more, "metadata", "annotations", "b") != "c" {
		t.Errorf("%v, %v, %v", stamp(more), stamp(less), stamp(again))
	}
}
