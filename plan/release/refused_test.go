package release

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An upgrade whose workload is refused has no instance that is updated: they run what they ran.
func TestRefusedWorkload(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, deployment)})
	w.run()
	w.in.Want.Content = "u1-b"
	w.chart = &Rendered{Chart: "web-2", Objects: objects(t, strings.ReplaceAll(deployment, "nginx:1", "nginx:2"))}
	ref := Ref{"apps/v1", "Deployment", "shop", "web"}
	w.in.Refused = map[Ref]string{ref: "no"}
	w.in.Fresh, w.in.Rendered, w.in.Objects = true, w.chart, map[Ref]*unstructured.Unstructured{ref: w.objects[ref]}
	for range 3 {
		w.in.Records = slices.Collect(maps.Values(w.records))
		p := Compute(w.in)
		for _, s := range p.Steps {
			if s.Record != nil {
				w.do(s)
			}
		}
		if n := p.Numbers; len(w.in.Records) > 1 && (n.Updated != 0 || n.Available != 3 || n.UpToDate) {
			t.Fatalf("%+v, %v", n, stalls(p))
		}
	}
	if w.records[2].Status != Failed {
		t.Errorf("%+v", w.records[2])
	}
	w.in.Refused = nil
	if p := w.run(); p.Numbers.Updated != 3 || !p.Numbers.UpToDate {
		t.Errorf("when it is not refused any more: %+v, %v", p.Numbers, stalls(p))
	}
}

// What the API server refuses fails the record, and is tried again.
func TestRefused(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, config+deployment)})
	ref := Ref{"v1", "ConfigMap", "shop", "web"}
	w.in.Refused, w.in.Fresh = map[Ref]string{ref: "no"}, true
	w.in.Records = nil
	w.in.Rendered, w.in.Objects = w.chart, map[Ref]*unstructured.Unstructured{ref: nil, {"apps/v1", "Deployment", "shop", "web"}: nil}
	w.do(Compute(w.in).Steps[0])
	w.in.Records = []Record{w.records[1]}
	p := Compute(w.in)
	last := p.Steps[len(p.Steps)-1]
	if last.Op != UpdateRecord || last.Record.Status != Failed || last.Record.Description != `the cluster refuses ConfigMap "web": no` {
		t.Errorf("%+v", last)
	}
	w.do(last)
	w.in.Refused = nil
	w.said()
	if p := w.run(); !p.Numbers.UpToDate {
		t.Errorf("%+v", p)
	}
	expect(t, "when it is not refused any more", w.said(), []string{"create ConfigMap/web", "create Deployment/web", "record 1 deployed"})
}

func TestBad(t *testing.T) {
	statefulSet := strings.ReplaceAll(strings.ReplaceAll(deployment, "Deployment", "StatefulSet"), "name: web", "name: other")
	for name, c := range map[string]struct {
		chart  Rendered
		change func(*world)
		want   []string
	}{
		"an error": {chart: Rendered{Err: `chart web-1: web/templates/a.yaml:3: nil pointer`}, want: []string{`ChartError: release "web": chart web-1: web/templates/a.yaml:3: nil pointer`}},
		"two workloads": {chart: Rendered{Objects: objects(t, strings.ReplaceAll(deployment, "name: web", "name: one")+"---\n"+statefulSet)}, want: []string{
			`AmbiguousWorkload: release "web": the chart has 2 workloads, and which of them has the podSet's replicas, image and version cannot be told: Deployment "one", StatefulSet "other". ` +
				`Name it in the podSet's meta, workload.dmall.com/workload: NAME, or have the chart name it as the release, as by fullnameOverride: web in rawValues`}},
		"no such workload": {chart: Rendered{Objects: objects(t, deployment)}, change: func(w *world) { w.in.Want.Workload = "x" }, want: []string{
			`AmbiguousWorkload: release "web": no single workload of the chart is named x: there are Deployment "web"`}},
		"an object of the cluster": {chart: Rendered{Objects: objects(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: other}\n")}, want: []string{
			`NotAllowed: release "web": Namespace "a", ConfigMap "b" is not in namespace shop, and charts may only have objects there. The operator of this cluster can allow others: ` +
				`fleet.charts.anywhere=true in the values of TApp's chart (--charts-anywhere)`}},
		"a CRD that may not be read": {
			chart: Rendered{Objects: objects(t, config), CRDs: objects(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x}\nspec: {group: x, scope: Namespaced, names: {kind: A}}\n")},
			change: func(w *world) {
				w.in.Hidden = map[Ref]string{{"apiextensions.k8s.io/v1", kindCRD, "", "as.x"}: "forbidden"}
			},
			want: []string{`Refused: release "web": the cluster refuses to show CustomResourceDefinition "as.x": forbidden. The chart has it in crds/: give ServiceAccount tapp-release of namespace shop ` +
				`the right to get it. Where the cluster lacks it, that needs the right to create and patch it, too, and fleet.charts.anywhere=true in the values of TApp's chart (--charts-anywhere)`}},
		"a CRD that the cluster lacks": {
			chart: Rendered{Objects: objects(t, config), CRDs: objects(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x}\nspec: {group: x, scope: Namespaced, names: {kind: A}}\n")},
			want: []string{`NotAllowed: release "web": CustomResourceDefinition "as.x" is not in namespace shop, and charts may only have objects there. The operator of this cluster can allow others: ` +
				`fleet.charts.anywhere=true in the values of TApp's chart (--charts-anywhere)`}},
		"an unknown kind": {chart: Rendered{Objects: objects(t, "apiVersion: x/v1\nkind: A\nmetadata: {name: a}\n")}, want: []string{
			`ChartError: release "web": the cluster has no kind A of x/v1, which web/templates/a.yaml has. Install what defines it, and the release goes on`}},
		"a name that is taken": {chart: Rendered{Objects: objects(t, config)}, change: func(w *world) {
			o := &unstructured.Unstructured{Object: objects(t, config)[0].Content}
			w.objects[Ref{"v1", "ConfigMap", "shop", "web"}] = o
		}, want: []string{`ErrResourceExists: release "web": ConfigMap "web" already exists, and no release has it. Delete or rename it, or give it to the release: label it app.kubernetes.io/managed-by=Helm, ` +
			`and annotate it meta.helm.sh/release-name=web and meta.helm.sh/release-namespace=shop`}},
		"a release of somebody else": {change: func(w *world) { w.records[4] = Record{Version: 4, Status: Deployed, Loaded: true} }, want: []string{
			`ErrResourceExists: release "web": Resource "web" already exists and is not managed by AdvDeployment: version 4 of the release is there, and helm made it by hand, or another controller. ` +
				`Uninstall it, or take it over: annotate the AdvDeployment with workload.dmall.com/adopt-releases=web`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &c.chart)
			if c.change != nil {
				c.change(w)
			}
			p := w.run()
			expect(t, "said", stalls(p), c.want)
			expect(t, "done", w.said(), nil)
		})
	}
}
