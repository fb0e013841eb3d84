package advdeployment

import (
	"encoding/base64"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/gen"
)

func TestAdviseCharts(t *testing.T) {
	chart := packed(t, `{{ lookup "v1" "Secret" "" "" }}`)
	const undone = "web/templates/a.yaml calls lookup, which finds nothing here: charts are rendered without access to the cluster"
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"one chart": {`{podSpec: {chart: {rawChart: H4s=}}, topology: {podSets: [{name: p}]}}`, nil},
		"of a part": {`{podSpec: {deployType: helm}, topology: {podSets: [{name: p, chart: {chartUrl: {url: a/b}, secretRef: {name: x}}}]}}`, nil},
		"both": {`{podSpec: {chart: {rawChart: H4s=, chartUrl: {url: a/b}}}, topology: {podSets: [{name: p, chart: {rawChart: H4s=, secretRef: {name: x}}}]}}`, []string{
			"spec.podSpec.chart.chartUrl: it has no effect, since rawChart is used",
			"spec.topology.podSets[p].chart.rawChart: it has no effect, since the archive in secretRef is used"}},
		"what is not done": {`{podSpec: {chart: {rawChart: ` + chart + `}}, topology: {podSets: [{name: p, chart: {rawChart: ` + chart + `}}]}}`, []string{
			"spec.podSpec.chart.rawChart: " + undone, "spec.topology.podSets[p].chart.rawChart: " + undone}},
		"of a chart that is not used": {`{podSpec: {deployType: tapp}, topology: {podSets: [{name: p, chart: {rawChart: ` + chart + `}}]}}`, []string{
			"spec.topology.podSets[p].chart: a chart has no effect with deployType InPlaceSet"}},
		"a template beside it": {`{podSpec: {chart: {rawChart: H4s=}, template: {}}}`, []string{"spec.podSpec.template: it has no effect with deployType helm: the chart has its own"}},
		"where none is used": {`{podSpec: {deployType: tapp, rawValues: "a: b", chart: {rawChart: H4s=}}}`, []string{
			"spec.podSpec.rawValues: values have no effect with deployType InPlaceSet",
			"spec.podSpec.chart: a chart has no effect with deployType InPlaceSet"}},
	} {
		d := &v1beta1.AdvDeployment{}
		if err := yaml.UnmarshalStrict([]byte("spec: "+c.spec), d); err != nil {
			t.Fatal(err)
		}
		if got := adviseCharts(d, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// packed is a chart with one template, in base64.
func packed(t *testing.T, template string) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(gen.Archive(t, map[string]string{"web/templates/a.yaml": template}))
}
