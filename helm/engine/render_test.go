//go:build !race

// The race detector takes more memory than a child process may have.

package engine_test

import (
	"errors"
	"testing"
	"time"

	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/test/gen"
)

func TestBadCharts(t *testing.T) {
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	for name, c := range map[string]struct {
		files   map[string]string
		raw     map[string]string
		values  string
		want    string
		request helm.Request
	}{
		"loops": {
			files: map[string]string{"templates/a.yaml": service, "templates/loop.yaml": "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"},
			want:  "chart web-1.2.3: web/templates/loop.yaml: rendering did not end within 5s",
		},
		"eats 2 GB": {
			files: map[string]string{"templates/eat.yaml": `# {{ repeat 2000000000 "x" | len }}`},
			want:  "chart web-1.2.3: web/templates/eat.yaml: rendering needs more than 512 MiB of memory",
		},
		"eats 2 GB bit by bit": {
			files: map[string]string{"templates/eat.yaml": `{{ $d := dict }}{{ range $i := until 2000 }}{{ $_ := set $d (toString $i) (repeat 1000000 (toString $i)) }}{{ end }}`},
			want:  "chart web-1.2.3: web/templates/eat.yaml: rendering needs more than 512 MiB of memory",
		},
		"writes without end": {
			files: map[string]string{"templates/big.yaml": `{{ range until 300000 }}# 0123456789abcdef{{ end }}`},
			want:  "chart web-1.2.3: its templates become 5400000 bytes; at most 4194304 are possible",
		},
		"a template that names itself": {
			files: map[string]string{"templates/_x.tpl": `{{ define "x" }}{{ template "x" . }}{{ end }}`, "templates/x.yaml": `{{ template "x" . }}`},
			want:  `chart web-1.2.3: web/templates/_x.tpl:1:16` + "\n  executing \"x\" at <{{template \"x\" .}}>:\n    exceeded maximum template depth (100000)",
		},
		"climbing paths": {
			raw:  map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n", "web/../../etc/passwd": "x"},
			want: "chart: reading the archive: chart illegally references parent directory",
		},
		"an absolute path": {
			raw:  map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n", "web//etc/passwd": "x"},
			want: "chart: reading the archive: chart illegally contains absolute paths",
		},
		"no archive": {
			request: helm.Request{Chart: []byte("apiVersion: v2")},
			want:    "chart: reading the archive: gzip: invalid header",
		},
		"an empty archive": {
			raw:  map[string]string{},
			want: "chart: reading the archive: no files in chart archive",
		},
		"values that the schema refuses": {
			files: map[string]string{
				"values.yaml":        "replicaCount: 1\n",
				"values.schema.json": `{"type": "object", "additionalProperties": false, "properties": {"replicaCount": {"type": "integer"}}}`,
			},
			values: "replicaCount: many\nfoo: 1\n",
			want: `chart web-1.2.3: values don't meet the specifications of the schema(s) in the following chart(s):
web:
- at '': additional properties 'foo' not allowed
- at '/replicaCount': got string, want integer`,
		},
		"a template error": {
			files: map[string]string{"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Values.a.b.c }}\n"},
			want: `chart web-1.2.3: web/templates/service.yaml:4:18
  executing "web/templates/service.yaml" at <.Values.a.b.c>:
    nil pointer evaluating interface {}.b`,
		},
		"a template error in the first line": {
			files: map[string]string{"templates/service.yaml": `{{ fail "no name given" }}`},
			want:  `chart web-1.2.3: execution error at (web/templates/service.yaml:1:3): no name given`,
		},
		"a template that does not parse": {
			files: map[string]string{"templates/service.yaml": "a: 1\n{{ if }}\n"},
			want:  `chart web-1.2.3: parse error at (web/templates/service.yaml:2): missing value for if`,
		},
		"no YAML": {
			files: map[string]string{"templates/service.yaml": "a: b\n c: d: e\n"},
			want:  "chart web-1.2.3: YAML parse error on web/templates/service.yaml: error converting YAML to JSON: yaml: line 2: mapping values are not allowed in this context",
		},
		"no object": {
			files: map[string]string{"templates/service.yaml": "a: 1\n"},
			want:  "chart web-1.2.3: web/templates/service.yaml: no object of Kubernetes: kind is missing",
		},
		"no name": {
			files: map[string]string{"templates/service.yaml": "apiVersion: v1\nkind: Service\n"},
			want:  "chart web-1.2.3: web/templates/service.yaml: Service without metadata.name",
		},
		"a dependency that is missing": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\ndependencies: [{name: redis, version: 1.x, repository: https://example.com}]\n"},
			want:  "chart web-1.2.3: dependencies of Chart.yaml are missing in charts/ of the archive: redis",
		},
		"a library": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\ntype: library\n"},
			want:  "chart web-1.2.3: library charts are not installable",
		},
		"another Kubernetes": {
			files:   map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\nkubeVersion: '>=1.40'\n"},
			request: helm.Request{KubeVersion: "v1.37.2"},
			want:    "chart web-1.2.3: chart requires kubeVersion: >=1.40 which is incompatible with Kubernetes v1.37.2",
		},
		"values that are a list": {
			values: "- a\n",
			want:   "chart web-1.2.3: its rawValues: cannot unmarshal yaml document: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
		},
		"no version": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\n"},
			want:  "chart web-: reading the archive: validation: chart.metadata.version is required",
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := c.request
			request.Release, request.Namespace = "web", "default"
			switch {
			case c.raw != nil:
				request.Chart = gen.Archive(t, c.raw)
			case request.Chart == nil:
				request.Chart = archive(t, c.files)
			}
			if c.values != "" {
				request.Values = []string{c.values}
			}
			limits := helm.Limits{Time: time.Minute}
			if name == "loops" {
				limits.Time = 5 * time.Second
			}
			_, err := helm.NewRenderer(limits).Render(t.Context(), request)
			var e *helm.Error
			if !errors.As(err, &e) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
