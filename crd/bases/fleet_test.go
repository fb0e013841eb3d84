package bases_test

import (
	"strings"
	"sync"
	"testing"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

var (
	newAppSetServer        = sync.OnceValues(func() (*apiServer, error) { return newAPIServer(v1beta1.KindAppSet) })
	newAdvDeploymentServer = sync.OnceValues(func() (*apiServer, error) { return newAPIServer(v1beta1.KindAdvDeployment) })
	newConfirmationServer  = sync.OnceValues(func() (*apiServer, error) { return newAPIServer(v1beta1.KindConfirmation) })
)

// appSetExample is the example of the original documents, with what they left out
// filled in.
const appSetExample = `
replicas: 10
podSpec:
  deployType: helm
  chart:
    chartUrl: {url: dmall/springBoot, chartVersion: 0.0.1}
    rawChart: H4sIAAAAAAAA
  template: {spec: {containers: [{name: bbcc, image: "nginx:1.25"}]}}
serviceName: inner.bbcc.dmall.com
updateStrategy:
  upgradeType: canary|blue|green
  minReadySeconds: 10
  canaryClusters: [tcc-bj4-dks-test-01]
  needWaitingForConfirm: true
  paused: false
clusterTopology:
  clusters:
  - name: tcc-bj4-dks-test-01
    meta: {sym-available-zone: bj4, sym-cluster-info: tcc-bj4-dks-test-01}
    podSets:
    - {name: bbcc-gz01b-canary, replicas: 1, version: v4}
    - {name: bbcc-gz01b-blue, replicas: 2, version: v3}
    - name: bbcc-gz01b-green
      replicas: 2
      version: v3
      image: nginx:1.25
      chart: {rawChart: H4sIAAAAAAAA}
      rawValues: "a: b"
      meta: {sym-group: green}
  - name: tcc-bj5-dks-test-01
    meta: {sym-available-zone: bj5, sym-cluster-info: tcc-bj5-dks-test-01}
    podSets:
    - {name: bbcc-gz01a-canary, replicas: 1, version: v4}
    - {name: bbcc-gz01a-blue, replicas: 2, version: v3}
    - {name: bbcc-gz01a-green, replicas: 20%, version: v3}
`

// fleetObject is an object of the fleet with this spec.
func fleetObject(t testing.TB, kind, name, spec string) map[string]any {
	t.Helper()
	object := parse(t, "{apiVersion: workload.dmall.com/v1beta1, kind: "+kind+", metadata: {name: "+name+"}}")
	object["spec"] = parse(t, spec)
	return object
}

func writeFleet(t testing.TB, newServer func() (*apiServer, error), object, old map[string]any) error {
	t.Helper()
	s, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	return s.write(t.Context(), object, old)
}

func TestAppSetAccepted(t *testing.T) {
	cases := map[string]string{
		"the example of the documents": appSetExample,
		"nothing":                      `{}`,
		"stages":                       `{updateStrategy: {stages: [{name: first, clusters: [a], confirm: true}, {name: rest, groups: [blue], soakSeconds: 60}], maxUnavailable: 10%, maxFailures: 1}}`,
		"ordinals":                     `{clusterTopology: {clusters: [{name: a, podSets: [{name: p, replicas: 2, ordinals: {start: 2}}]}]}}`,
		"names of clusters":            `{clusterTopology: {clusters: [{name: TCC_BJ4}]}}`,
	}
	for _, spelling := range []string{"helm", "HELM", "InPlaceSet", "inplaceset", "tapp", "StatefulSet", "statefulset", "deployment", "Deployment"} {
		cases["deployType "+spelling] = "{podSpec: {deployType: " + spelling + "}}"
	}
	for name, spec := range cases {
		t.Run(name, func(t *testing.T) {
			if err := writeFleet(t, newAppSetServer, fleetObject(t, v1beta1.KindAppSet, "bbcc", spec), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAppSetRefused(t *testing.T) {
	for name, c := range map[string]struct{ name, spec, want string }{
		"name with a dot":       {"a.b", `{}`, "the name must be a DNS label that begins with a letter and has at most 59 characters: it becomes a label of pods and, with -svc, the name of a Service"},
		"name too long":         {strings.Repeat("a", 60), `{}`, "at most 59 characters"},
		"unknown deployType":    {"a", `{podSpec: {deployType: daemonset}}`, `spec.podSpec.deployType: Invalid value: "daemonset": must be helm, InPlaceSet, StatefulSet or deployment`},
		"unknown group":         {"a", `{updateStrategy: {upgradeType: canary|red}}`, "spec.updateStrategy.upgradeType: Invalid value: \"canary|red\": must be canary, blue, green, or several of them in the order of the rollout, as in canary|blue|green"},
		"a group twice":         {"a", `{updateStrategy: {upgradeType: blue|blue}}`, "must be canary, blue, green"},
		"stages and upgrade":    {"a", `{updateStrategy: {upgradeType: blue, stages: [{name: a}]}}`, "spec.updateStrategy.stages: Invalid value: stages replaces upgradeType: give one of them"},
		"canary elsewhere":      {"a", `{updateStrategy: {canaryClusters: [b]}, clusterTopology: {clusters: [{name: a}]}}`, "spec.updateStrategy.canaryClusters: Invalid value: a canary cluster is not among clusterTopology.clusters: add it there, or drop it here"},
		"canary of no clusters": {"a", `{updateStrategy: {canaryClusters: [b]}}`, "a canary cluster is not among clusterTopology.clusters"},
		"a chart of nothing":    {"a", `{podSpec: {chart: {}}}`, "spec.podSpec.chart: Invalid value: give rawChart or chartUrl"},
		"a cluster twice":       {"a", `{clusterTopology: {clusters: [{name: a}, {name: a}]}}`, `spec.clusterTopology.clusters[1]: Duplicate value: {"name":"a"}`},
		"a podSet twice":        {"a", `{clusterTopology: {clusters: [{name: a, podSets: [{name: p}, {name: p}]}]}}`, `spec.clusterTopology.clusters[0].podSets[1]: Duplicate value: {"name":"p"}`},
		"name of a podSet":      {"a", `{clusterTopology: {clusters: [{name: a, podSets: [{name: P_1}]}]}}`, "spec.clusterTopology.clusters[0].podSets[0].name: Invalid value: \"P_1\""},
		"a version":             {"a", `{clusterTopology: {clusters: [{name: a, podSets: [{name: p, version: "v 1"}]}]}}`, "spec.clusterTopology.clusters[0].podSets[0].version: Invalid value: \"v 1\""},
		"negative replicas":     {"a", `{replicas: -1}`, "spec.replicas: Invalid value: -1"},
		"an unknown field":      {"a", `{replica: 1}`, "unknown fields: [spec.replica]"},
		"deletionPolicy":        {"a", `{deletionPolicy: Keep}`, `spec.deletionPolicy: Unsupported value: "Keep"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := writeFleet(t, newAppSetServer, fleetObject(t, v1beta1.KindAppSet, c.name, c.spec), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestDeployTypeImmutable(t *testing.T) {
	for kind, server := range map[string]func() (*apiServer, error){
		v1beta1.KindAppSet: newAppSetServer, v1beta1.KindAdvDeployment: newAdvDeploymentServer,
	} {
		for change, ok := range map[[2]string]bool{
			{`{podSpec: {deployType: helm}}`, `{podSpec: {deployType: Helm}}`}:       true,
			{`{podSpec: {deployType: helm}}`, `{podSpec: {deployType: deployment}}`}: false,
			{`{podSpec: {deployType: helm}}`, `{}`}:                                  false,
			{`{}`, `{}`}:                                                             true,
			{`{}`, `{podSpec: {deployType: Deployment}}`}:                            true,
			{`{}`, `{podSpec: {chart: {chartUrl: {url: a/b}}}}`}:                     false,
			{`{podSpec: {chart: {chartUrl: {url: a/b}}}}`, `{}`}:                     false,
			{`{podSpec: {chart: {chartUrl: {url: a/b}}}}`, `{podSpec: {deployType: helm, chart: {chartUrl: {url: a/b}}}}`}: true,
		} {
			err := writeFleet(t, server, fleetObject(t, kind, "a", change[1]), fleetObject(t, kind, "a", change[0]))
			if ok && err != nil || !ok && (err == nil || !strings.Contains(err.Error(), "spec.podSpec.deployType: Invalid value: deployType is immutable: the objects of one type would be abandoned for those of another. Create another "+kind+" to change it")) {
				t.Errorf("%s from %s to %s: %v", kind, change[0], change[1], err)
			}
		}
	}
}

func TestAdvDeploymentAccepted(t *testing.T) {
	for name, spec := range map[string]string{
		"nothing":      `{}`,
		"by a user":    `{replicas: 3, podSpec: {template: {spec: {containers: [{name: a, image: nginx}]}}}, topology: {podSets: [{name: a, replicas: 3, version: v1}]}}`,
		"by a master":  `{topology: {podSets: [{name: a, replicas: 3, revision: old, paused: true, maxUnavailable: 0, ceiling: 1, chart: {secretRef: {name: tapp-chart-1}}}]}, revisions: [{name: old, content: {anything: [1, a]}}]}`,
		"chart by URL": `{topology: {podSets: [{name: a, chart: {chartUrl: {url: dmall/a}}}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := writeFleet(t, newAdvDeploymentServer, fleetObject(t, v1beta1.KindAdvDeployment, "bbcc", spec), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConfirmation(t *testing.T) {
	const spec = `{appSet: bbcc, rollout: 0123456789-4, stage: canary, token: 0a1b, comment: looks well}`
	if err := writeFleet(t, newConfirmationServer, fleetObject(t, v1beta1.KindConfirmation, "bbcc-0a1b", spec), nil); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct{ name, spec, old, want string }{
		"another name":    {"bbcc", spec, "", "the name must be that of the AppSet, a hyphen and the token, so that a gate is confirmed once"},
		"another rollout": {"bbcc-0a1b", strings.Replace(spec, "6789-4", "6789-5", 1), spec, "spec: Invalid value: a confirmation is immutable"},
		"no id":           {"bbcc-0a1b", strings.Replace(spec, "0123456789-4", "v1", 1), "", `spec.rollout: Invalid value: "v1"`},
		"no token":        {"bbcc-", `{appSet: bbcc, rollout: 0123456789-4, stage: canary}`, "", "spec.token: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			var old map[string]any
			if c.old != "" {
				old = fleetObject(t, v1beta1.KindConfirmation, c.name, c.old)
			}
			err := writeFleet(t, newConfirmationServer, fleetObject(t, v1beta1.KindConfirmation, c.name, c.spec), old)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
