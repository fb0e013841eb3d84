package release

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/plan/manifest"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: chart}}
  template:
    metadata: {labels: {app: chart}}
    spec: {containers: [{name: app, image: "nginx:1"}, {name: side, image: "side:1"}]}
`

const config = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {a: "1"}
---
`

func expect(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func stalls(p Plan) (out []string) {
	for _, s := range p.Stalls {
		out = append(out, s.Reason+": "+s.Message)
	}
	return out
}

// A release is installed, looked at, upgraded, scaled and uninstalled.
func TestLife(t *testing.T) {
	chart := &Rendered{
		Chart: "web-1", Objects: objects(t, config+deployment), TakesReplicas: true,
		CRDs: objects(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x}\nspec: {group: x, scope: Namespaced, names: {kind: A}}\n"),
		Hooks: []Hook{
			hook(t, "second", 2, []string{"hook-succeeded"}, "pre-install", "pre-upgrade"),
			hook(t, "sooner", 1, []string{"hook-succeeded"}, "pre-install"),
			hook(t, "after", 0, nil, "post-install", "post-upgrade"),
			hook(t, "bye", 0, []string{"hook-succeeded"}, "pre-delete"),
			hook(t, "test", 0, nil, "test"),
		},
	}
	w := newWorld(t, chart)
	w.in.Anywhere = true
	p := w.run()
	expect(t, "install", w.said(), []string{
		"create CustomResourceDefinition/as.x", "record 1 pending-install",
		"record 1 pending-install", "record 1 pending-install", "create Job/sooner", "record 1 pending-install",
		"record 1 pending-install", "create Job/second", "record 1 pending-install",
		"delete Job/sooner", "delete Job/second", "record 1 pending-install",
		"create ConfigMap/web", "create Deployment/web",
		"record 1 pending-install", "record 1 pending-install", "create Job/after", "record 1 pending-install", "record 1 pending-install",
		"record 1 deployed",
	})
	if n := p.Numbers; !n.UpToDate || n.Available != 3 || n.Updated != 3 || n.Version != "1" || len(p.Waits)+len(p.Stalls) > 0 {
		t.Errorf("installed: %+v, %q, %q", n, p.Waits, p.Stalls)
	}
	w.run()
	expect(t, "at rest", w.said(), nil)

	delete(w.objects, Ref{"v1", "ConfigMap", "shop", "web"})
	_ = unstructured.SetNestedField(w.objects[Ref{"apps/v1", "Deployment", "shop", "web"}].Object, int64(9), "spec", "replicas")
	w.run()
	expect(t, "drift", w.said(), []string{"create ConfigMap/web", "apply Deployment/web"})

	w.in.Want.Content = "u1-b"
	w.chart = &Rendered{Chart: "web-2", Objects: objects(t, strings.ReplaceAll(deployment, "nginx:1", "nginx:2")), TakesReplicas: true, Hooks: chart.Hooks}
	p = w.run()
	expect(t, "upgrade", w.said(), []string{
		"record 2 pending-upgrade", "record 2 pending-upgrade", "record 2 pending-upgrade", "create Job/second", "record 2 pending-upgrade",
		"delete Job/second", "record 2 pending-upgrade", "apply Deployment/web", "delete ConfigMap/web",
		"record 2 pending-upgrade", "delete Job/after", "record 2 pending-upgrade", "create Job/after", "record 2 pending-upgrade", "record 2 pending-upgrade",
		"record 2 deployed", "record 1 superseded",
	})
	if n := p.Numbers; !n.UpToDate || n.Version != "2" || n.Chart != "web-2" {
		t.Errorf("upgraded: %+v", n)
	}

	w.in.Want = nil
	if p = w.run(); !p.Gone {
		t.Errorf("not gone: %+v", p)
	}
	expect(t, "uninstall", w.said(), []string{
		"record 2 uninstalling", "record 2 uninstalling", "record 2 uninstalling", "create Job/bye", "record 2 uninstalling", "delete Job/bye", "record 2 uninstalling",
		"delete Deployment/web", "record 1 gone", "record 2 gone",
	})
	if len(w.objects) != 2 { // the CRD, and a hook that no policy deletes: as helm leaves them
		t.Errorf("left: %v", w.objects)
	}
}

// The release of somebody else is taken over by an annotation, as an upgrade.
func TestAdopt(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, deployment)})
	w.records[4] = Record{Version: 4, Status: Deployed, Loaded: true, Objects: objects(t, config)}
	o := &unstructured.Unstructured{Object: objects(t, config)[0].Content}
	o.SetAnnotations(map[string]string{annotationReleaseName: "web", annotationReleaseNamespace: "shop"})
	w.objects[Ref{"v1", "ConfigMap", "shop", "web"}] = o
	w.in.Adopt = true
	if p := w.run(); !p.Numbers.UpToDate {
		t.Errorf("%+v", p)
	}
	expect(t, "done", w.said(), []string{"record 5 pending-upgrade", "create Deployment/web", "delete ConfigMap/web", "record 5 deployed", "record 4 superseded"})
}

// The workload has what its podSet says, and keeps what the chart selects by.
func TestDress(t *testing.T) {
	w := newWorld(t, &Rendered{Objects: objects(t, deployment)})
	w.in.Want.Image, w.in.Want.Version, w.in.Want.MinReadySeconds, w.in.Want.MaxUnavailable = "other", "v4", 10, new(int32(2))
	w.in.Want.Labels = map[string]string{"app": "app", "release": "web", "version": "v4"}
	w.in.Want.Nodes = &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}
	w.run()
	o := w.objects[Ref{"apps/v1", "Deployment", "shop", "web"}].Object
	for _, c := range []struct {
		want any
		path []string
	}{
		{int64(3), []string{"spec", "replicas"}},
		{int64(10), []string{"spec", "minReadySeconds"}},
		{int64(2), []string{"spec", "strategy", "rollingUpdate", "maxUnavailable"}},
		{"chart", []string{"spec", "template", "metadata", "labels", "app"}},
		{"web", []string{"spec", "template", "metadata", "labels", "release"}},
		{"v4", []string{"spec", "template", "metadata", "labels", "version"}},
		{"v4", []string{"metadata", "labels", "version"}},
		{"Helm", []string{"metadata", "labels", "app.kubernetes.io/managed-by"}},
	} {
		if got := manifest.At(o, c.path...); got != c.want {
			t.Errorf("%s is %v, want %v", strings.Join(c.path, "."), got, c.want)
		}
	}
	containers := manifest.At(o, "spec", "template", "spec", "containers").([]any)
	if main, side := manifest.At(containers[0], "image"), manifest.At(containers[1], "image"); main != "other:v4" || side != "side:1" {
		t.Errorf("images %v, %v", main, side)
	}
	if manifest.At(o, "spec", "template", "spec", "affinity", "nodeAffinity") == nil {
		t.Error("no node affinity")
	}
}

// While it is held back a release keeps its content, and follows its replicas.
func TestHeld(t *testing.T) {
	w := newWorld(t, &Rendered{Objects: objects(t, deployment)})
	w.run()
	w.said()
	w.in.Want.Held, w.in.Want.Content, w.in.Want.Replicas = true, "u1-b", 5
	p := w.run()
	expect(t, "held", w.said(), []string{"apply Deployment/web"})
	if n := p.Numbers; n.UpToDate || n.Updated != 0 || n.Available != 5 {
		t.Errorf("%+v", n)
	}
	w.in.Want.Held = false
	w.run()
	expect(t, "let go", w.said(), []string{"record 2 pending-upgrade", "record 2 deployed", "record 1 superseded"})
}

// A hook that runs is waited for by name: no watch tells of its end.
func TestPolls(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, deployment), Hooks: []Hook{hook(t, "job", 0, nil, "pre-install")}})
	w.settle = func(Ref, *unstructured.Unstructured) {}
	p := w.run()
	if len(p.Polls) != 1 || p.Polls[0] != (Ref{"batch/v1", "Job", "shop", "job"}) {
		t.Errorf("it polls %v", p.Polls)
	}
	w.settle = ready
	ready(Ref{}, w.objects[p.Polls[0]])
	if p = w.run(); len(p.Polls) > 0 || !p.Numbers.UpToDate {
		t.Errorf("it polls %v: %+v", p.Polls, p.Numbers)
	}

	// What somebody else has may be given to the release, or go.
	ref := Ref{"v1", "ConfigMap", "shop", "web"}
	w = newWorld(t, &Rendered{Objects: objects(t, config)})
	w.objects[ref] = &unstructured.Unstructured{Object: objects(t, config)[0].Content}
	if p = w.run(); len(p.Polls) != 1 || p.Polls[0] != ref {
		t.Errorf("it polls %v", p.Polls)
	}
	w.records[4] = Record{Version: 4, Status: Deployed, Loaded: true}
	if p = w.run(); len(p.Polls) != 1 || p.Polls[0] != RecordRef("web") {
		t.Errorf("it polls %v", p.Polls)
	}
}

// TestNodeLost: a TApp of a chart whose node is lost needs help, and has not failed.
func TestNodeLost(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, "apiVersion: apps.tkestack.io/v1\nkind: TApp\nmetadata: {name: web}\nspec: {replicas: 1}\n")})
	w.in.Scopes[schema.GroupVersionKind{Group: "apps.tkestack.io", Version: "v1", Kind: "TApp"}] = true
	for stalled, want := range map[string]string{"NodeLost": "NodeLost", "InvalidSpec": ReasonWorkloadFailed} {
		w.settle = func(_ Ref, o *unstructured.Unstructured) {
			o.Object["status"] = map[string]any{"observedGeneration": o.GetGeneration(), "replicas": int64(1), "conditions": []any{
				map[string]any{"type": "Ready", "status": "False"}, map[string]any{"type": "Stalled", "status": "True", "reason": stalled, "message": "so it is"}}}
		}
		for ref, o := range w.objects {
			w.settle(ref, o)
		}
		p := w.run()
		expect(t, stalled, stalls(p), []string{want + `: release "web": TApp "web": so it is`})
	}
}

// What helm does by hand is read before anything is put right: an object that is missing
// may be missing because helm takes the release apart.
func TestHelmByHand(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, config+deployment)})
	w.run()
	w.said()
	w.in.Rendered, w.in.Fresh = nil, false
	w.in.Objects = map[Ref]*unstructured.Unstructured{{"v1", "ConfigMap", "shop", "web"}: nil, {"apps/v1", "Deployment", "shop", "web"}: nil}
	w.in.Records = []Record{w.records[1]}
	if p := Compute(w.in); !p.Refresh || len(p.Steps) > 0 {
		t.Errorf("with records that may be outdated: %+v", p)
	}

	byHelm := w.records[1]
	byHelm.Owner, byHelm.Status = "", Uninstalling
	w.in.Fresh = true
	for _, status := range []Status{Uninstalling, PendingUpgrade} {
		byHelm.Status = status
		w.in.Records = []Record{byHelm}
		w.in.Adopt = false
		expect(t, "helm's", stalls(Compute(w.in)), []string{`ErrResourceExists: release "web": Resource "web" already exists and is not managed by AdvDeployment: version 1 of the release is there, and ` +
			"helm made it by hand, or another controller. Uninstall it, or take it over: annotate the AdvDeployment with workload.dmall.com/adopt-releases=web"})
		w.in.Adopt = true
		p := Compute(w.in)
		expect(t, "to be adopted", p.Waits, []string{`release "web": version 1 is ` + string(status) + ", and is waited for"})
		if len(p.Steps) > 0 || p.Asks() || !slices.Contains(p.Polls, RecordRef("web")) {
			t.Errorf("%s: %+v", status, p)
		}
	}
	clear(w.records)
	clear(w.objects)
	w.run()
	expect(t, "when helm is done", w.said(), []string{"record 1 pending-install", "create ConfigMap/web", "create Deployment/web", "record 1 deployed"})
}
