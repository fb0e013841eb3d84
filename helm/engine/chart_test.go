package engine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"

	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/helm/engine"
)

// shop is a chart with a bit of everything.
var shop = map[string]string{
	"Chart.yaml": `apiVersion: v2
name: web
version: 1.2.3
appVersion: "7"
dependencies:
- {name: cache, version: 0.1.0, condition: cache.enabled}
- {name: queue, version: 0.1.0, condition: queue.enabled}
`,
	"values.yaml": `replicaCount: 1
image: {repository: nginx, tag: ""}
greeting: hello
cache: {enabled: true}
queue: {enabled: false}
`,
	"charts/cache/Chart.yaml":          "apiVersion: v2\nname: cache\nversion: 0.1.0\n",
	"charts/cache/values.yaml":         "size: 5\n",
	"charts/cache/templates/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cache}\ndata: {size: \"{{ .Values.size }}\"}\n",
	"charts/cache/crds/cache.yaml":     "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: caches.example.com}\n",
	"charts/queue/Chart.yaml":          "apiVersion: v2\nname: queue\nversion: 0.1.0\n",
	"charts/queue/templates/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: queue}\n",
	"crds/web.yaml":                    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: webs.example.com}\n",
	"templates/NOTES.txt":              "Thank you for installing {{ .Release.Name }} in {{ .Release.Namespace }}.",
	"charts/cache/templates/NOTES.txt": "not shown",
	"templates/_helpers.tpl":           `{{ define "name" }}{{ .Release.Name }}-web{{ end }}`,
	"templates/all.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ include "name" . }}}
spec:
  replicas: {{ .Values.replicaCount }}
  template: {spec: {containers: [{name: web, image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"}]}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
- {apiVersion: v1, kind: Secret, metadata: {name: a}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
---
# nothing
`,
	"templates/about.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: about}
data:
  kube: {{ .Capabilities.KubeVersion }}
  autoscaling: "{{ .Capabilities.APIVersions.Has "autoscaling/v2/HorizontalPodAutoscaler" }}"
  release: {{ .Release.Service }} {{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }}
  greeting: {{ .Values.greeting }}
  found: "{{ len (lookup "v1" "Secret" "default" "") }}{{ getHostByName "example.com" }}"
`,
	"templates/hooks.yaml": `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: "pre-install, pre-upgrade", helm.sh/hook-weight: "5", helm.sh/hook-delete-policy: "hook-succeeded,hook-failed"}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: "-1"}
---
apiVersion: v1
kind: Pod
metadata:
  name: try
  annotations: {helm.sh/hook: test}
`,
}

func render(t testing.TB, request helm.Request) *helm.Rendered {
	t.Helper()
	if request.Release == "" {
		request.Release, request.Namespace = "blue", "shop"
	}
	out, err := helm.NewRenderer(helm.Limits{}).Render(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func names(t *testing.T, manifest string) (out []string) {
	t.Helper()
	objects, err := helm.Objects(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		out = append(out, fmt.Sprint(o.GetKind(), "/", o.GetName(), " ", o.Source))
	}
	return out
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %#v\nwant %#v", what, got, want)
	}
}

func TestRender(t *testing.T) {
	out := render(t, helm.Request{
		Chart:       archive(t, shop),
		Values:      []string{"greeting: hi\nimage: {repository: from-podspec}\ncache: {size: 6}\nreplicaCount: 2\n", "cache: {size: 7}\n"},
		Defaults:    map[string]any{"image": map[string]any{"tag": "v4", "repository": "unused"}, "container": map[string]any{"image": map[string]any{"tag": "v4"}}},
		Overrides:   map[string]any{"replicaCount": 5, "unknown": 1, "sym": map[string]any{"group": "blue"}, "greeting": map[string]any{"a": "no map in the chart"}},
		KubeVersion: "v1.37.2", APIVersions: []string{"v1", "autoscaling/v2/HorizontalPodAutoscaler"},
	})
	same(t, "chart", out.Chart, helm.ChartInfo{Name: "web", Version: "1.2.3", AppVersion: "7"})
	same(t, "objects", names(t, out.Manifest), []string{
		"ConfigMap/cache web/charts/cache/templates/cm.yaml",
		"ConfigMap/about web/templates/about.yaml",
		"Service/web web/templates/all.yaml",
		"Deployment/blue-web web/templates/all.yaml",
		"Secret/b web/templates/all.yaml",
		"Secret/a web/templates/all.yaml",
	})
	same(t, "crds", names(t, out.CRDs), []string{
		"CustomResourceDefinition/webs.example.com web/crds/web.yaml",
		"CustomResourceDefinition/caches.example.com web/charts/cache/crds/cache.yaml",
	})
	same(t, "notes", out.Notes, "Thank you for installing blue in shop.")
	same(t, "warnings", out.Warnings, []string{
		"a template calls getHostByName, which finds nothing here: charts are rendered without network",
		"a template calls lookup, which finds nothing here: charts are rendered without access to the cluster",
		"web/templates/hooks.yaml is a test, which is not run here: `helm test blue` runs it",
	})
	var values any
	if err := json.Unmarshal(out.Values, &values); err != nil {
		t.Fatal(err)
	}
	same(t, "values", values, map[string]any{
		"greeting": "hi", "replicaCount": 5.0,
		"image": map[string]any{"repository": "from-podspec", "tag": "v4"}, "cache": map[string]any{"size": 7.0},
	})
	objects, err := helm.Objects(out.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "size of the cache", objects[0].Object["data"], map[string]any{"size": "7"})
	same(t, "what is told of the release", objects[1].Object["data"], map[string]any{
		"kube": "v1.37.2", "autoscaling": "true", "release": "Helm 1 true false", "greeting": "hi", "found": "0",
	})
	spec, _ := objects[3].Object["spec"].(map[string]any)
	same(t, "replicas", spec["replicas"], int64(5))
}

func TestHooks(t *testing.T) {
	out := render(t, helm.Request{Chart: archive(t, shop)})
	order := func(event string) (out2 []string) {
		for _, h := range helm.HooksFor(out.Hooks, event) {
			out2 = append(out2, h.Name)
		}
		return out2
	}
	same(t, "before an install", order(helm.PreInstall), []string{"settings", "migrate"})
	same(t, "before an upgrade", order(helm.PreUpgrade), []string{"migrate"})
	same(t, "tests", order(helm.Test), []string{"try"})
	migrate := out.Hooks[slices.IndexFunc(out.Hooks, func(h helm.Hook) bool { return h.Name == "migrate" })]
	settings := out.Hooks[slices.IndexFunc(out.Hooks, func(h helm.Hook) bool { return h.Name == "settings" })]
	for policy, want := range map[string][2]bool{helm.BeforeHookCreation: {false, true}, helm.HookSucceeded: {true, false}, helm.HookFailed: {true, false}} {
		same(t, policy, [2]bool{migrate.Deletes(policy), settings.Deletes(policy)}, want)
	}
}

// TestRenderIsSteady: equal requests have equal answers; records are compared.
func TestRenderIsSteady(t *testing.T) {
	files := maps.Clone(shop)
	for _, name := range []string{"queue", "search", "store"} {
		files["charts/"+name+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 0.1.0\n"
		files["charts/"+name+"/crds/"+name+".yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + ".example.com}\n"
	}
	request := helm.Request{Chart: archive(t, files), Release: "blue", Namespace: "shop", Revision: 2, Values: []string{"queue: {enabled: true}"}}
	first := render(t, request)
	for range 10 {
		again, err := engine.Render(request, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "crds", again.CRDs, first.CRDs)
		same(t, "objects", again.Manifest, first.Manifest)
		same(t, "record", string(again.Record), string(first.Record))
	}
}

func TestRemoteSchemas(t *testing.T) {
	for schema, want := range map[string][]string{
		`{"$ref": "https://example.com/schema.json"}`:                                          {`values of web are not checked: its values.schema.json refers to "https://example.com/schema.json", which is not fetched`},
		`{"properties": {"a": {"$ref": "file:///etc/passwd"}}}`:                                {`values of web are not checked: its values.schema.json refers to "file:///etc/passwd", which is not fetched`},
		`{"$schema": "http://json-schema.org/draft-07/schema#"}`:                               nil,
		`{"$id": "https://example.com/s", "$defs": {"a": {}}, "$ref": "#/$defs/a"}`:            nil,
		`{"$defs": {"a": {"$id": "https://example.com/a"}}, "$ref": "https://example.com/a#"}`: nil,
		`{"$schema": "https://example.com/my-own", "type": "object"}`:                          {`values of web are not checked: its values.schema.json refers to "https://example.com/my-own", which is not fetched`},
	} {
		out := render(t, helm.Request{Chart: archive(t, map[string]string{"values.schema.json": schema})})
		same(t, schema, out.Warnings, want)
	}
}
