package appset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

const charted = `
metadata: {name: web, namespace: shop, uid: web-1, generation: 1}
spec:
  podSpec: {deployType: helm, chart: {chartUrl: {url: dmall/web, chartVersion: "1.0"}}}
  clusterTopology:
    clusters:
    - {name: one, podSets: [{name: a, replicas: 2}, {name: b, replicas: 1, chart: {rawChart: H4s=}}]}
`

// retried is what the part of a cluster is asked by for another try.
func (w *world) retried(cluster string) string {
	return w.clusters[cluster].Part.Annotations[v1beta1.AnnotationRetry]
}

// failHook has a hook of the release of a podSet fail, as its worker tells of it.
func (w *world) failHook(cluster string, podSet int) {
	part := w.clusters[cluster].Part
	s := &part.Status.AggrStatus.PodSets[podSet]
	s.Reason, s.Message, s.Observed = "HookFailed", "a hook failed", false
	part.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "HookFailed", Message: "a hook failed"}}
}

// Another try of a rollout reaches the releases whose hooks failed, within a budget, too, and no
// cluster that has them behind it or before it. What fails later is not tried again by it.
func TestRetryReleases(t *testing.T) {
	for _, limit := range []*intstr.IntOrString{nil, new(intstr.FromInt32(1))} {
		w := newWorld(t, charted, "one", "two", "three")
		w.edit(func(a *v1beta1.AppSet) {
			a.Spec.PodSpec.Chart = &v1beta1.ChartSpec{RawChart: []byte("\x1f\x8bone")}
			a.Spec.UpdateStrategy.MaxUnavailable = limit
			clusters := &a.Spec.ClusterTopology.Clusters
			(*clusters)[0].PodSets = (*clusters)[0].PodSets[:1]
			for _, name := range []string{"two", "three"} {
				*clusters = append(*clusters, *(*clusters)[0].DeepCopy())
				(*clusters)[len(*clusters)-1].Name = name
			}
		})
		w.install()
		w.edit(func(a *v1beta1.AppSet) { a.Spec.PodSpec.Chart.RawChart = []byte("\x1f\x8btwo") })
		w.settle().work().settle().expect("Apply one", "Apply two").work()
		w.failHook("two", 0)
		w.settle().expect("Apply two")
		w.workIn("two")
		w.failHook("two", 0)
		w.settle().expect()
		id := w.app.Status.Rollout.ID
		if grant := w.clusters["two"].Part.Spec.Topology.PodSets[0].MaxUnavailable; w.app.Status.Rollout.State != "Halted" || grant == nil || *grant != 0 {
			t.Fatalf("%+v, with a budget of %v", w.app.Status.Rollout, grant)
		}

		annotate(w, v1beta1.AnnotationRetry, id)
		w.settle().expect("Apply two")
		if grant := w.clusters["two"].Part.Spec.Topology.PodSets[0].MaxUnavailable; w.app.Status.Rollout.State != "Staged" || grant != nil && *grant == 0 || w.retried("two") != id || w.retried("one")+w.retried("three") != "" {
			t.Fatalf("%+v, with a budget of %v, asked by %q", w.app.Status.Rollout, grant, w.retried("two"))
		}
		w.work().settle().work().settle()
		if w.app.Status.Rollout.State != "Done" || w.retried("one") != "" || w.retried("two") != id || w.retried("three") != id {
			t.Errorf("%+v, asked by %q, %q, %q", w.app.Status.Rollout, w.retried("one"), w.retried("two"), w.retried("three"))
		}
		w.wrote = nil
		annotate(w, v1beta1.AnnotationRetry, id+"/2")
		w.settle().expect()
	}
}

// A part has each chart by its digest, and no archive.
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
		p := Compute(in)
		if stalled := meta.FindStatusCondition(p.Status.Conditions, v1beta1.ConditionStalled); stalled.Reason != ReasonChart || stalled.Message != c.want {
			t.Errorf("%s: %s: %s", name, stalled.Reason, stalled.Message)
		}
		if sum := p.Status.AggrStatus; sum.Desired != 3 || sum.Status != v1beta1.PhaseInstalling {
			t.Errorf("%s: %+v", name, sum)
		}
	}
}

// charted2 has two podSets with charts of their own, and one in another cluster.
const charted2 = `
metadata: {name: web, namespace: shop, uid: web-1, generation: 1}
spec:
  podSpec: {deployType: helm}
  clusterTopology:
    clusters:
    - {name: one, podSets: [{name: a, replicas: 2, chart: {chartUrl: {url: dmall/a}}}, {name: b, replicas: 1, chart: {chartUrl: {url: dmall/b}}}]}
    - {name: two, podSets: [{name: a, replicas: 2, chart: {chartUrl: {url: dmall/a}}}]}
`

// A chart that cannot be had holds its own podSets: one that is not there yet stays away,
// one that is there keeps its content and follows its replicas, and all others go on.
func TestOneChartIsMissing(t *testing.T) {
	digest := func(of string) string { return strings.Repeat(of, 32) }
	has := func(w *world, cluster string) string {
		var out []string
		part := w.clusters[cluster].Part
		if part == nil {
			return ""
		}
		units, _, problems := podset.Placed(part)
		if len(problems) > 0 {
			t.Fatalf("%v", problems)
		}
		for _, u := range units {
			if u.Content.Chart.Digest == "" {
				t.Fatalf("%s has podSet %s with a chart that only names a place", cluster, u.PodSet.Name)
			}
			out = append(out, fmt.Sprintf("%s=%s*%d", u.PodSet.Name, u.Content.Chart.Digest[:2], u.Replicas))
		}
		return strings.Join(out, " ")
	}
	w := newWorld(t, charted2, "one", "two")
	w.charts = map[string]Chart{"dmall/a": {Err: "403"}, "dmall/b": {Digest: digest("bb")}}
	expect := func(what, one, two, stalled string) {
		t.Helper()
		for range 5 {
			w.settle()
			_, _ = has(w, "one"), has(w, "two")
			w.work()
		}
		if got := has(w, "one") + ", " + has(w, "two"); got != one+", "+two {
			t.Errorf("%s: %s, want %s, %s", what, got, one, two)
		}
		said := ""
		if c := meta.FindStatusCondition(w.app.Status.Conditions, v1beta1.ConditionStalled); c.Status == metav1.ConditionTrue {
			said = c.Message
		}
		if said != stalled {
			t.Errorf("%s: it says %q, want %q", what, said, stalled)
		}
	}
	change := func(edit func(*v1beta1.AppSetSpec)) { w.edit(func(a *v1beta1.AppSet) { edit(&a.Spec) }) }
	urlOf := func(s *v1beta1.AppSetSpec, cluster, podSet int) *string {
		return &s.ClusterTopology.Clusters[cluster].PodSets[podSet].Chart.ChartURL.URL
	}
	missing := func(cluster, podSet, why string) string {
		return "spec.clusterTopology.clusters[" + cluster + "].podSets[" + podSet + "].chart.chartUrl: " + why
	}
	expect("the chart of a is refused", "b=bb*1", "", missing("one", "a", "403")+"; "+missing("two", "a", "403"))
	w.charts["dmall/a"] = Chart{Digest: digest("aa")}
	expect("it is there", "a=aa*2 b=bb*1", "a=aa*2", "")

	change(func(s *v1beta1.AppSetSpec) {
		*urlOf(s, 0, 0), *urlOf(s, 0, 1) = "dmall/none", "dmall/c"
		s.ClusterTopology.Clusters[0].PodSets[0].RawValues = "a: 1"
		s.ClusterTopology.Clusters[0].PodSets[0].Replicas = new(intstr.FromInt32(5))
	})
	w.charts["dmall/none"], w.charts["dmall/c"] = Chart{Err: "404"}, Chart{Digest: digest("cc")}
	expect("another chart is not there", "a=aa*5 b=cc*1", "a=aa*2", missing("one", "a", "404"))
	was := w.clusters["one"].Part.DeepCopy()
	w.clusters["one"].Part = nil // somebody deleted it: it comes back as recorded
	expect("the part was deleted", "a=aa*5 b=cc*1", "a=aa*2", missing("one", "a", "404"))
	if differs := different("spec", was.Spec, w.clusters["one"].Part.Spec); len(differs) > 0 {
		t.Errorf("it came back with other %v", differs)
	}

	change(func(s *v1beta1.AppSetSpec) { s.ClusterTopology.Clusters = s.ClusterTopology.Clusters[:1] })
	expect("a cluster leaves meanwhile", "a=aa*5 b=cc*1", "a=aa*2", missing("one", "a", "404"))
	change(func(s *v1beta1.AppSetSpec) { s.ClusterTopology.Clusters[0].PodSets[0].Name = "renamed" })
	expect("a podSet is renamed meanwhile", "a=aa*5 b=cc*1", "a=aa*2", missing("one", "renamed", "404")+"; "+
		missing("one", "renamed", "until the chart is there cluster one keeps podSet a, which the spec does not have any more, and nothing else changes"))
	change(func(s *v1beta1.AppSetSpec) { s.ClusterTopology.Clusters[0].PodSets[0].Name = "a" })
	w.charts["dmall/none"] = Chart{Digest: digest("dd")}
	expect("it is had", "a=dd*5 b=cc*1", "", "")
}

// documented is the example of the design that AppSets come from, but for the lines of it
// that are placeholders.
const documented = `
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata:
  name: bbcc
  namespace: default
spec:
  replicas: 10
  podSpec:
    deployType: helm                 # helm, InPlaceSet，StatefulSet, deployment等， 目前支持helm
    chart:                           # helm部署时生效
      chartUrl:                      # helm仓库chart描述
        url: dmall/springBoot        
        chartVersion: 0.0.1
  serviceName: inner.bbcc.dmall.com  # App 的 service 名称
  updateStrategy:                    # 升级策略
    upgradeType: canary|blue|green   
    minReadySeconds: 10
    canaryClusters:                  # 灰度部署集群拓扑
      - tcc-bj4-dks-test-01
    needWaitingForConfirm: true
    paused: false
  clusterTopology:
    clusters:
      - name: tcc-bj4-dks-test-01
        meta:
          sym-available-zone: bj4
          sym-cluster-info: tcc-bj4-dks-test-01
        podSets:
          - name: bbcc-gz01b-canary
            replicas: 1
            version: v4
          - name: bbcc-gz01b-blue
            replicas: 2
            version: v3
          - name: bbcc-gz01b-green
            replicas: 2      # override replicas
            version: v3      # override version
            meta:
              sym-group: green
      - name: tcc-bj5-dks-test-01
        meta:
          sym-available-zone: bj5
          sym-cluster-info: tcc-bj5-dks-test-01
        podSets:
          - name: bbcc-gz01a-canary
            replicas: 1
            version: v4
          - name: bbcc-gz01a-blue
            replicas: 2
            version: v3
          - name: bbcc-gz01a-green
            replicas: 2
            version: v3
`

// The example of the design becomes a release for each podSet, of the same chart in both
// clusters.
func TestDocumentedExample(t *testing.T) {
	w := newWorld(t, documented, "tcc-bj4-dks-test-01", "tcc-bj5-dks-test-01")
	w.charts = map[string]Chart{"dmall/springBoot 0.0.1": {Digest: strings.Repeat("ab", 32)}}
	for range 12 {
		w.settle().work()
		if w.app.Status.Rollout != nil && w.app.Status.AggrStatus.Status == v1beta1.PhaseWaitingForConfirm {
			w.confirm()
		}
	}
	w.settle().says(v1beta1.PhaseRunning, "10/10/0 v3/v4", "")
	var got []string
	for _, cluster := range []string{"tcc-bj4-dks-test-01", "tcc-bj5-dks-test-01"} {
		units, _, problems := podset.Placed(w.clusters[cluster].Part)
		if len(problems) > 0 {
			t.Fatalf("%v", problems)
		}
		for _, u := range units {
			got = append(got, fmt.Sprintf("%s %s %d %s %s %s", u.Content.DeployType, u.PodSet.Name, u.Replicas, u.Version, u.Group, u.Content.Chart.Digest[:4]))
		}
	}
	want := []string{
		"helm bbcc-gz01b-canary 1 v4 canary abab", "helm bbcc-gz01b-blue 2 v3 blue abab", "helm bbcc-gz01b-green 2 v3 green abab",
		"helm bbcc-gz01a-canary 1 v4 canary abab", "helm bbcc-gz01a-blue 2 v3 blue abab", "helm bbcc-gz01a-green 2 v3 green abab",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
