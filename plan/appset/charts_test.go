package appset

import (
	"strings"
	"testing"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

const charted = `
metadata: {name: web, namespace: shop, uid: web-1, generation: 1}
spec:
  podSpec: {deployType: helm, chart: {chartUrl: {url: dmall/web, chartVersion: "1.0"}}}
  clusterTopology:
    clusters:
    - {name: one, podSets: [{name: a, replicas: 2}, {name: b, replicas: 1, chart: {rawChart: H4s=}}]}
`

// A part has each chart by its digest, and no archive; what could not be fetched is a
// problem of the spec, and nothing is written.
func TestCharts(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	w := newWorld(t, charted, "one")
	raw, places := Charts(w.app)
	if len(raw) != 1 || len(places) != 1 || places[0].Place() != "dmall/web 1.0" {
		t.Fatalf("it names the archives %v and the places %v", raw, places)
	}

	in := w.input()
	in.Charts = map[string]Chart{"dmall/web 1.0": {Digest: digest}}
	spec := newComputation(in).sites[0].spec
	if spec == nil || spec.PodSpec.Chart != nil || spec.PodSpec.DeployType != v1beta1.DeployHelm {
		t.Fatalf("the part is %+v", spec)
	}
	part := &v1beta1.AdvDeployment{Spec: *spec}
	digests := Digests(part)
	if len(digests) != 2 || digests[0] != digest || raw[digests[1]] == nil {
		t.Errorf("the part has the charts %v", digests)
	}
	if chart := spec.Topology.PodSets[1].Chart; len(chart.RawChart) > 0 || chart.ChartURL != nil {
		t.Errorf("the part has an archive: %+v", chart)
	}

	// Who only looks takes the digest from a part.
	looks := w.input()
	looks.Clusters[0].Part = part
	if c := newComputation(looks); len(c.problems) > 0 || c.units[0].Content.Chart.Digest != digest {
		t.Errorf("%q, %+v", c.problems, c.units)
	}

	for name, c := range map[string]struct {
		charts map[string]Chart
		want   string
	}{
		"not asked yet": {map[string]Chart{}, "spec.podSpec.chart.chartUrl: it has not been fetched yet"},
		"refused":       {map[string]Chart{"dmall/web 1.0": {Err: "chart dmall/web 1.0: 403"}}, "spec.podSpec.chart.chartUrl: chart dmall/web 1.0: 403"},
	} {
		in.Charts = c.charts
		made := newComputation(in)
		if len(made.problems) != 1 || made.problems[0].Field+": "+made.problems[0].Why != c.want || made.units != nil {
			t.Errorf("%s: %q, %d units", name, made.problems, len(made.units))
		}
		if p := Compute(in); len(p.Actions) > 0 || p.Own != nil && len(p.Own.Clusters) > 0 {
			t.Errorf("%s: it writes %+v", name, p)
		}
	}
}
