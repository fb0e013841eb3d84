package podset

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

func read(t interface {
	Helper()
	Fatal(...any)
}, text string,
) *v1beta1.AppSet {
	t.Helper()
	a := &v1beta1.AppSet{}
	if err := yaml.UnmarshalStrict([]byte(text), a); err != nil {
		t.Fatal(err)
	}
	return a
}

const example = `
metadata: {name: bbcc, namespace: default}
spec:
  replicas: 10
  labels: {team: a, tier: web}
  meta: {tier: front, note: "no label value, since it has spaces"}
  podSpec:
    deployType: tapp
    template:
      metadata: {labels: {team: t, from: template}, annotations: {a: b}}
      spec:
        containers: [{name: log, image: "log:1"}, {name: bbcc, image: nginx}]
        affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]}}}
  serviceName: inner.bbcc.dmall.com
  clusterTopology:
    clusters:
    - name: tcc-bj4
      meta: {sym-available-zone: bj4, sym-cluster-info: bj4}
      podSets:
      - {name: bbcc-gz01b-canary, replicas: 1, version: v4}
      - {name: bbcc-gz01b-blue, replicas: 2, image: "nginx:1.25", version: v3, meta: {sym-group: green}}
    - name: TCC_BJ5
      podSets:
      - {name: other, replicas: 1, nodeSelectorTerm: {matchExpressions: [{key: c, operator: Exists}]}}
`

func TestUnits(t *testing.T) {
	a := read(t, example)
	before := a.DeepCopy()
	units, notes, problems := Units(a)
	if len(problems) > 0 || len(units) != 3 {
		t.Fatalf("%d units, %v", len(units), problems)
	}
	if len(notes) != 1 || notes[0].Field != "spec.replicas" {
		t.Errorf("notes %v", notes)
	}
	canary, blue, other := units[0], units[1], units[2]
	for _, c := range []struct {
		unit                  Unit
		group, version, image string
		labels                map[string]string
	}{
		{canary, "canary", "v4", "nginx:v4", map[string]string{
			"from": "template", "team": "a", "tier": "front", "sym-available-zone": "bj4", "sym-cluster-info": "bj4", "app": "bbcc", "release": "bbcc-gz01b-canary",
			"version": "v4", "sym-group": "canary", "sym-ldc": "gz01b", "lightningDomain0": "inner.bbcc.dmall.com"}},
		{blue, "green", "v3", "nginx:1.25", map[string]string{
			"from": "template", "team": "a", "tier": "front", "sym-available-zone": "bj4", "sym-cluster-info": "bj4", "app": "bbcc", "release": "bbcc-gz01b-blue",
			"version": "v3", "sym-group": "green", "sym-ldc": "gz01b", "lightningDomain0": "inner.bbcc.dmall.com"}},
		{other, "", "latest", "nginx", map[string]string{
			"from": "template", "team": "a", "tier": "front", "sym-cluster-info": "TCC_BJ5", "app": "bbcc", "release": "other", "lightningDomain0": "inner.bbcc.dmall.com"}},
	} {
		pod := c.unit.Content.Template
		if c.unit.Group != c.group || c.unit.Version != c.version || pod.Spec.Containers[1].Image != c.image || !maps.Equal(pod.Labels, c.labels) {
			t.Errorf("%s: group %q, version %q, image %s, labels %v", c.unit.PodSet.Name, c.unit.Group, c.unit.Version, pod.Spec.Containers[1].Image, pod.Labels)
		}
		if want := map[string]string{"a": "b", "note": "no label value, since it has spaces"}; !maps.Equal(pod.Annotations, want) {
			t.Errorf("annotations %v", pod.Annotations)
		}
	}
	terms := other.Content.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 2 || len(terms[0].MatchExpressions) != 2 || terms[1].MatchExpressions[1].Key != "c" {
		t.Errorf("terms %v", terms)
	}
	if canary.Hash == blue.Hash || !strings.HasPrefix(canary.Hash, "u1-") {
		t.Errorf("hashes %s, %s", canary.Hash, blue.Hash)
	}
	if raw, _ := yaml.Marshal(a); string(raw) != string(must(yaml.Marshal(before))) {
		t.Error("the AppSet was changed")
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestHash: golden, and what is content and what is not.
func TestHash(t *testing.T) {
	hash := func(change func(*v1beta1.AppSet)) string {
		a := read(t, example)
		change(a)
		units, _, problems := Units(a)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return units[0].Hash
	}
	plain := hash(func(*v1beta1.AppSet) {})
	if plain != "u1-aa3ad22f815959eb" {
		t.Errorf("the hash of the example is %s: all AppSets would be rolled out anew", plain)
	}
	first := func(a *v1beta1.AppSet) *v1beta1.PodSet { return &a.Spec.ClusterTopology.Clusters[0].PodSets[0] }
	for name, change := range map[string]func(*v1beta1.AppSet){
		"replicas": func(a *v1beta1.AppSet) { first(a).Replicas = new(intstr.FromInt32(7)) },
		"strategy": func(a *v1beta1.AppSet) { a.Spec.UpdateStrategy.Paused = true },
		"another podSet": func(a *v1beta1.AppSet) {
			a.Spec.ClusterTopology.Clusters[0].PodSets[1].Version = "v9"
		},
		"case of the type": func(a *v1beta1.AppSet) { a.Spec.PodSpec.DeployType = "InPlaceSet" },
	} {
		if hash(change) != plain {
			t.Errorf("%s is content", name)
		}
	}
	for name, change := range map[string]func(*v1beta1.AppSet){
		"version":  func(a *v1beta1.AppSet) { first(a).Version = "v5" },
		"image":    func(a *v1beta1.AppSet) { first(a).Image = "httpd" },
		"template": func(a *v1beta1.AppSet) { a.Spec.PodSpec.Template.Spec.Containers[0].Image = "log:2" },
		"labels":   func(a *v1beta1.AppSet) { a.Spec.Labels["x"] = "y" },
		"meta":     func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters[0].Meta["x"] = "y" },
		"service":  func(a *v1beta1.AppSet) { a.Spec.ServiceName = "web" },
		"type":     func(a *v1beta1.AppSet) { a.Spec.PodSpec.DeployType = "StatefulSet" },
	} {
		if hash(change) == plain {
			t.Errorf("%s is no content", name)
		}
	}
}

func TestUnitsOfCharts(t *testing.T) {
	a := read(t, `
metadata: {name: bbcc}
spec:
  podSpec: {chart: {chartUrl: {url: dmall/a, chartVersion: "1"}}, rawValues: "a: 1"}
  clusterTopology: {clusters: [{name: c, podSets: [
    {name: p, replicas: 1, version: v1},
    {name: q, replicas: 1, image: "x:2", rawValues: "a: 2", chart: {rawChart: H4toZWxsbw==}}]}]}
`)
	units, _, problems := Units(a)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, q := units[0].Content, units[1].Content
	if p.DeployType != v1beta1.DeployHelm || p.Chart.URL != "dmall/a" || p.Chart.Version != "1" || !slices.Equal(p.Values, []string{"a: 1"}) || p.Version != "v1" || p.Labels["release"] != "p" {
		t.Errorf("%+v", p)
	}
	if q.Chart.Digest != DigestOf([]byte("\x1f\x8bhello")) || !slices.Equal(q.Values, []string{"a: 1", "a: 2"}) || q.Image != "x:2" {
		t.Errorf("%+v", q)
	}
}

func TestUnitsRefused(t *testing.T) {
	const head = "metadata: {name: bbcc}\nspec: "
	template := "podSpec: {template: {spec: {containers: [{name: a, image: nginx}]}}}, "
	one := func(podSet string) string {
		return head + "{" + template + "clusterTopology: {clusters: [{name: c, podSets: [" + podSet + "]}]}}"
	}
	for name, c := range map[string]struct{ app, want string }{
		"unknown type":     {head + "{podSpec: {deployType: daemonset}}", `spec.podSpec.deployType: "daemonset" is none of helm, InPlaceSet, StatefulSet and deployment`},
		"no template":      {head + "{podSpec: {deployType: tapp}}", "spec.podSpec.template: deployType InPlaceSet needs a pod template"},
		"no container":     {head + "{podSpec: {template: {}}, clusterTopology: {clusters: [{name: c, podSets: [{name: p, replicas: 1}]}]}}", "spec.podSpec.template.spec.containers: the template has no container"},
		"no archive":       {head + "{podSpec: {chart: {rawChart: aGVsbG8=}}, clusterTopology: {clusters: [{name: c, podSets: [{name: p, replicas: 1}]}]}}", "spec.podSpec.chart.rawChart: it is no archive of a chart, as `helm package` makes one"},
		"no chart":         {head + "{podSpec: {deployType: helm}, clusterTopology: {clusters: [{name: c, podSets: [{name: p, replicas: 1}]}]}}", "spec.clusterTopology.clusters[c].podSets[p].chart: deployType helm needs a chart, here or in spec.podSpec.chart"},
		"an image":         {one(`{name: p, replicas: 1, image: "a b"}`), `spec.clusterTopology.clusters[c].podSets[p].image: "a b" is no reference to an image`},
		"a reserved label": {one(`{name: p, replicas: 1, meta: {app: x}}`), "spec.clusterTopology.clusters[c].podSets[p].meta[app]: the label app is what the selectors of all children go by; choose another key"},
		"no key":           {one(`{name: p, replicas: 1, meta: {"a b": x}}`), "spec.clusterTopology.clusters[c].podSets[p].meta[a b]: this is no key of a label: name part must consist of alphanumeric characters"},
		"template's label": {head + "{podSpec: {template: {metadata: {labels: {release: x}}, spec: {containers: [{name: a}]}}}, clusterTopology: {clusters: [{name: c, podSets: [{name: p, replicas: 1}]}]}}",
			"spec.podSpec.template.metadata.labels[release]: the label release is what the selectors of all children go by; choose another key"},
	} {
		t.Run(name, func(t *testing.T) {
			units, _, problems := Units(read(t, c.app))
			if len(units) != 0 || len(problems) != 1 || !strings.HasPrefix(problems[0].Field+": "+problems[0].Why, c.want) {
				t.Errorf("%d units, %v\nwant %s", len(units), problems, c.want)
			}
		})
	}
}
