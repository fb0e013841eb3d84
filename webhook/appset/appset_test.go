package appset

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/gen"
)

const template = `template: {spec: {containers: [{name: a, image: "a:1"}]}}`

// read an AppSet with this spec.
func read(t *testing.T, spec string) *v1beta1.AppSet {
	t.Helper()
	a := &v1beta1.AppSet{}
	a.Namespace, a.Name = "ns", "a"
	if err := yaml.UnmarshalStrict([]byte(spec), &a.Spec); err != nil {
		t.Fatal(err)
	}
	return a
}

type ruleCase struct{ name, spec, was, want string }

// testRule checks all that a rule has to say, whole. was is "" on creation.
func testRule(t *testing.T, rule string, cases []ruleCase) {
	t.Helper()
	r := Rules().Named(rule)[0]
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := read(t, c.spec)
			before := a.DeepCopy()
			var got []string
			if r.Judge != nil {
				for _, err := range r.Judge(a) {
					got = append(got, err.Error())
				}
			}
			var was *v1beta1.AppSet
			if c.was != "" {
				was = read(t, c.was)
				for _, err := range r.Compare(a, was) {
					got = append(got, err.Error())
				}
			}
			if r.Advise != nil {
				for _, text := range r.Advise(a, was) {
					got = append(got, "warning: "+text)
				}
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("got\n%s\nwant\n%s", text, c.want)
			}
			if !reflect.DeepEqual(before, a) {
				t.Error("the rule changed the AppSet")
			}
		})
	}
}

func TestUnits(t *testing.T) {
	testRule(t, "Units", []ruleCase{
		{"good", `{podSpec: {` + template + `}}`, "", ""},
		{"no podSets", `{replicas: 3, podSpec: {` + template + `}}`, "", "warning: spec.replicas: there is no podSet that has instances, so that 3 has no effect"},
		{"claims that nobody makes", `{podSpec: {volumeClaimTemplates: [{metadata: {name: data}}], ` + template + `}}`, "", "warning: spec.podSpec.volumeClaimTemplates: claims have no effect with deployType deployment"},
		{"no template", `{podSpec: {deployType: tapp}}`, "", "spec.podSpec.template: Invalid value: deployType InPlaceSet needs a pod template"},
		{"a version that is only a label", `{podSpec: {` + template + `}, clusterTopology: {clusters: [{name: one, podSets: [{name: p, replicas: 1, version: v4}]}]}}`, "",
			"warning: spec.clusterTopology.clusters[one].podSets[p].version: version v4 labels the pods; their image stays a:1; leave out its tag to have the version there"},
	})
}

func TestImmutable(t *testing.T) {
	ofSet := func(size string) string {
		return strings.Replace(`{podSpec: {deployType: StatefulSet, volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: SIZE}}}}]}}`, "SIZE", size, 1)
	}
	claims := func(size, more string) string {
		return `{podSpec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {` + more + `resources: {requests: {storage: ` + size + `}}}}]}}`
	}
	labelled := func(deployType, version string) string {
		return `{podSpec: {deployType: ` + deployType + `, volumeClaimTemplates: [{metadata: {name: data, labels: {version: ` + version + `}, annotations: {of: ` + version + `}}, spec: {resources: {requests: {storage: 1Gi}}}}]}}`
	}
	const advice = "claims cannot change, but for labels, annotations and more storage; make another application of it"
	testRule(t, "Immutable", []ruleCase{
		{"nothing changed", claims("1Gi", ""), claims("1024Mi", ""), ""},
		{"more storage", claims("2Gi", ""), claims("1Gi", ""), ""},
		{"no more for a StatefulSet", ofSet("1024Mi"), ofSet("1Gi"), ""},
		{"more storage for a StatefulSet", ofSet("2Gi"), ofSet("1Gi"),
			"spec.podSpec.volumeClaimTemplates[data]: Forbidden: those of a StatefulSet cannot change; have the claims in the clusters ask for more storage, or make another application of it"},
		{"less storage", claims("1Gi", ""), claims("2Gi", ""),
			"spec.podSpec.volumeClaimTemplates[data].spec.resources.requests.storage: Forbidden: it cannot shrink from 2Gi to 1Gi"},
		{"another class", claims("1Gi", "storageClassName: fast, "), claims("1Gi", ""), "spec.podSpec.volumeClaimTemplates[data]: Forbidden: " + advice},
		{"other labels of claims", labelled("InPlaceSet", "v2"), labelled("InPlaceSet", "v1"), ""},
		{"other labels of a StatefulSet's claims", labelled("StatefulSet", "v2"), labelled("StatefulSet", "v1"),
			"spec.podSpec.volumeClaimTemplates[data]: Forbidden: those of a StatefulSet cannot change; have the claims in the clusters ask for more storage, or make another application of it"},
		{"another name of a claim", strings.Replace(claims("1Gi", ""), "name: data", "name: logs", 1), claims("1Gi", ""), "spec.podSpec.volumeClaimTemplates[data]: Forbidden: " + advice},
		{"no claims any more", `{}`, claims("1Gi", ""), "spec.podSpec.volumeClaimTemplates: Forbidden: " + advice},
		{"another domain", `{serviceName: b.example.com}`, `{serviceName: a.example.com}`, ""},
		{"another Service", `{serviceName: b}`, `{serviceName: a}`,
			`spec.serviceName: Forbidden: it cannot change from "a" to "b": only one domain can become another, since the Service keeps its name then`},
		{"a domain in place of a Service", `{serviceName: a.example.com}`, `{serviceName: a}`,
			`spec.serviceName: Forbidden: it cannot change from "a" to "a.example.com": only one domain can become another, since the Service keeps its name then`},
		{"another selector", `{podSpec: {selector: {matchLabels: {a: b}}}}`, `{}`,
			"spec.podSpec.selector: Forbidden: it cannot change, since those of the objects in the clusters cannot; make another application of it"},
	})
}

func TestCharts(t *testing.T) {
	const tests = "metadata:\n  annotations: {helm.sh/hook: test}\n"
	testRule(t, "Charts", []ruleCase{
		{"what is not done", `{podSpec: {chart: {rawChart: ` + packed(t, tests) + `}}, clusterTopology: {clusters: [{name: c, podSets: [{name: p, chart: {rawChart: ` + packed(t, `{{ getHostByName "a" }}`) + `}}]}]}}`, "",
			"warning: spec.podSpec.chart.rawChart: web/templates/a.yaml has a test, which is not run here: `helm test` runs it\n" +
				"warning: spec.clusterTopology.clusters[c].podSets[p].chart.rawChart: web/templates/a.yaml calls getHostByName, which finds nothing here: charts are rendered without network"},
		{"by its address", `{podSpec: {chart: {chartUrl: {url: a/b}}}}`, "", ""},
		{"both", `{podSpec: {chart: {rawChart: H4s=, chartUrl: {url: a/b}}}}`, "", "warning: spec.podSpec.chart.chartUrl: it has no effect, since rawChart is used"},
		{"of a podSet, too large", `{podSpec: {deployType: helm}, clusterTopology: {clusters: [{name: c, podSets: [{name: p, chart: {rawChart: ` + strings.Repeat("H4th", 256<<10+1) + `}}]}]}}`, "",
			"spec.podSpec.chart.rawChart: Invalid value: the raw archives have 786435 bytes in all, and at most 786432 can be stored; put the chart into a repository and give its chartUrl"},
		{"a template beside", `{podSpec: {chart: {chartUrl: {url: a/b}}, ` + template + `}}`, "", "warning: spec.podSpec.template: it has no effect with deployType helm: the chart has its own"},
		{"where none is used", `{podSpec: {deployType: tapp, rawValues: "a: b", chart: {rawChart: H4s=}}}`, "",
			"warning: spec.podSpec.rawValues: values have no effect with deployType InPlaceSet\nwarning: spec.podSpec.chart: a chart has no effect with deployType InPlaceSet"},
	})
}

func TestBudget(t *testing.T) {
	const warning = "warning: spec.updateStrategy.maxFailures: a silent cluster uses maxUnavailable up with all of its instances, so that no rollout can pass it; set unreachableCounts to AsLastSeen to count them as they were seen last"
	testRule(t, "Budget", []ruleCase{
		{"no budget", `{updateStrategy: {maxFailures: 1}}`, "", ""},
		{"no failures", `{updateStrategy: {maxUnavailable: 1, maxFailures: 0}}`, "", ""},
		{"as last seen", `{updateStrategy: {maxUnavailable: 1, maxFailures: 1, unreachableCounts: AsLastSeen}}`, "", ""},
		{"both", `{updateStrategy: {maxUnavailable: 1, maxFailures: 1}}`, "", warning},
	})
}

// packed is a chart with one template, in base64.
func packed(t *testing.T, template string) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(gen.Archive(t, map[string]string{"web/templates/a.yaml": template}))
}
