package engine_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/helm/engine"
)

// large is a chart of 40 KB that becomes 440 KB: as one of the large public charts.
func large(b *testing.B) helm.Request {
	files := map[string]string{"values.yaml": "names: [" + strings.TrimSuffix(strings.Repeat("a,", 22), ",") + "]\n"}
	for i := range 40 {
		files[fmt.Sprintf("templates/t%d.yaml", i)] = fmt.Sprintf(`{{ range $n, $name := .Values.names }}---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.Release.Name }}-%d-{{ $n }}
  labels: {app.kubernetes.io/name: {{ $name }}, app.kubernetes.io/instance: {{ $.Release.Name | quote }}}
data:
  text: |
    {{- "%s" | nindent 4 }}
{{ end }}`, i, strings.Repeat("0123456789", 32))
	}
	return helm.Request{Chart: archive(b, files), Release: "blue", Namespace: "shop"}
}

func check(b *testing.B, out *helm.Rendered, err error) {
	if err != nil || len(out.Manifest) < 440<<10 {
		b.Fatal(len(out.Manifest), err)
	}
}

// BenchmarkRender440KB is the engine alone, in this process.
func BenchmarkRender440KB(b *testing.B) {
	request := large(b)
	b.ReportAllocs()
	for b.Loop() {
		out, err := engine.Render(request, io.Discard)
		check(b, out, err)
	}
}

// BenchmarkChild440KB has a child process do it, as the controller does. The process
// is this test, which is larger than tapp.
func BenchmarkChild440KB(b *testing.B) {
	request, renderer := large(b), helm.NewRenderer(helm.Limits{})
	for b.Loop() {
		out, err := renderer.Render(b.Context(), request)
		check(b, out, err)
	}
}

// BenchmarkRecord440KB encodes the release's record, and reads it and its objects.
func BenchmarkRecord440KB(b *testing.B) {
	out, err := engine.Render(large(b), io.Discard)
	check(b, out, err)
	b.ReportAllocs()
	for b.Loop() {
		secret, err := helm.NewRecord(out, "shop", "blue", 1, time.Now()).Secret(time.Now())
		if err != nil {
			b.Fatal(err)
		}
		back, err := helm.DecodeRecord(secret)
		if err != nil {
			b.Fatal(err)
		}
		if objects, err := helm.Objects(back.Manifest); err != nil || len(objects) != 880 {
			b.Fatal(len(objects), err)
		}
	}
}
