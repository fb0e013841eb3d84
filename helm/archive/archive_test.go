package archive

import (
	"slices"
	"strings"
	"testing"

	"tkestack.io/tapp/test/gen"
)

func TestUndone(t *testing.T) {
	const (
		lookup = "web/templates/a.yaml calls lookup, which finds nothing here: charts are rendered without access to the cluster"
		host   = "web/templates/a.yaml calls getHostByName, which finds nothing here: charts are rendered without network"
		test   = "web/templates/a.yaml has a test, which is not run here: `helm test` runs it"
	)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a call":                 {`a: {{ lookup "v1" "Secret" "" "a" }}`, []string{lookup}},
		"in a condition":         {`{{- if (lookup "v1" "Secret" .Release.Namespace "a").data }}`, []string{lookup}},
		"in a variable":          {`{{- $s := lookup "v1" "Secret" .Release.Namespace "a" -}}`, []string{lookup}},
		"over lines":             {"{{- $s := (lookup\n  \"v1\" \"Secret\" \"\" \"\") }}", []string{lookup}},
		"both functions":         {`{{ lookup $a $b $c $d }}{{ getHostByName .Values.host }}{{ lookup "" "" "" "" }}`, []string{host, lookup}},
		"in a comment":           {`{{/* lookup "v1" "Secret" */}}{{- /* (lookup "v1") */ -}}`, nil},
		"not in an action":       {`# lookup "v1"`, nil},
		"a name":                 {`{{ include "lookup" . }}{{ .Values.lookup "a" }}`, nil},
		"a test":                 {"metadata:\n  annotations:\n    \"helm.sh/hook\": test\n", []string{test}},
		"a test by its old name": {"metadata: {annotations: {helm.sh/hook: \"post-install, test-success\"}}\n", []string{test}},
		"other hooks":            {"helm.sh/hook: pre-install,post-upgrade\nhelm.sh/hook-weight: test\n# helm.sh/hook: test\n", nil},
		"nothing":                {"a: {{ .Values.a }}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NewReader().Undone(gen.Archive(t, map[string]string{"web/templates/a.yaml": c.text, "web/README.md": `{{ lookup "v1" "Secret" "" "" }}`})); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Subcharts are read, packed or not; what is no archive, or too much, says nothing.
func TestUndoneIn(t *testing.T) {
	call := `{{ lookup "v1" "Secret" "" "" }}`
	packed := gen.Archive(t, map[string]string{"cache/templates/b.yaml": call})
	got := NewReader().Undone(gen.Archive(t, map[string]string{"web/charts/cache-1.tgz": string(packed), "web/charts/queue/templates/c.yaml": call}))
	if want := []string{
		"web/charts/cache/templates/b.yaml calls lookup, which finds nothing here: charts are rendered without access to the cluster",
		"web/charts/queue/templates/c.yaml calls lookup, which finds nothing here: charts are rendered without access to the cluster",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	deep := packed
	for range 10 {
		deep = gen.Archive(t, map[string]string{"web/charts/cache-1.tgz": string(deep)})
	}
	many := map[string]string{}
	for _, name := range strings.Split("abcdefghijkl", "") {
		many["web/templates/"+name+".yaml"] = call
	}
	bomb := map[string]string{"web/a": strings.Repeat("0", maxUnpacked), "web/templates/a.yaml": call}
	for name, c := range map[string]struct {
		chart []byte
		want  int
	}{
		"no archive":     {[]byte("H4s="), 0},
		"cut off":        {packed[:len(packed)/2], 0},
		"too deep":       {deep, 0},
		"many":           {gen.Archive(t, many), maxSaid},
		"too large":      {gen.Archive(t, bomb), 0},
		"one large file": {gen.Archive(t, map[string]string{"web/templates/a.yaml": call + strings.Repeat(" ", maxFile), "web/templates/b.yaml": call}), 1},
	} {
		if got := NewReader().Undone(c.chart); len(got) != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The bounds are for all archives of an object: many small ones, each of which unpacks to
// much, are read no longer than one.
func TestBoundsOfAnObject(t *testing.T) {
	call := `{{ lookup "v1" "Secret" "" "" }}`
	large := gen.Archive(t, map[string]string{"web/templates/a.yaml": call + strings.Repeat(" ", maxFile-len(call))})
	r := NewReader()
	for i, want := range []int{1, 1, 0, 0} {
		if got := r.Undone(large); len(got) != want {
			t.Errorf("archive %d: %q", i, got)
		}
	}
	harmless := gen.Archive(t, map[string]string{"web/templates/a.yaml": strings.Repeat(" ", maxFile)})
	r = NewReader()
	for range 10 {
		r.Undone(harmless)
	}
	if got := r.Undone(large); len(got) != 1 {
		t.Errorf("templates without a call use up what may be searched: %q", got)
	}
	bomb := gen.Archive(t, map[string]string{"web/a": strings.Repeat("0", maxUnpacked/2)})
	r = NewReader()
	r.Undone(bomb)
	r.Undone(bomb)
	if got := r.Undone(large); len(got) != 0 {
		t.Errorf("more is unpacked than may be: %q", got)
	}
}
