//go:build cluster

package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// fromDocuments is the AppSet of the documents that the API comes from, as it stands there,
// but for the names of its clusters, and with what is left out there filled in: the archives
// of charts, an image, values, a template.
func fromDocuments(chart, green string) string {
	return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata:
  name: bbcc
spec:
  replicas: 10
  podSpec:
    deployType: helm
    chart:
      chartUrl:
        url: dmall/springBoot
        chartVersion: 0.0.1
      rawChart: %s
    template: {spec: {containers: [{name: bbcc, image: busybox}]}}
  serviceName: inner.bbcc.dmall.com
  updateStrategy:
    upgradeType: canary|blue|green
    minReadySeconds: 10
    canaryClusters:
      - member1
    needWaitingForConfirm: true
    paused: false
  clusterTopology:
    clusters:
      - name: member1
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
            replicas: 2
            version: v3
            image: nginx
            chart: {rawChart: %s}
            rawValues: "word: green"
            meta:
              sym-group: green
      - name: member2
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
`, chart, green)
}

// springBoot is a chart with the keys of the original systems' charts.
func springBoot(t *testing.T, version, image string) string {
	t.Helper()
	files := web()
	delete(files, "templates/hook.yaml")
	files["Chart.yaml"] = "apiVersion: v2\nname: springBoot\nversion: " + version + "\n"
	files["values.yaml"] = "replicaCount: 1\ncontainer: {image: {repository: " + image + ", tag: latest}}\nword: hello\nextra: false\n"
	files["templates/deployment.yaml"] = strings.NewReplacer(".Values.image.", ".Values.container.image.", " | default .Chart.AppVersion", "").Replace(files["templates/deployment.yaml"])
	return chart(t, files)
}

// TestFromDocuments: the AppSet of the documents becomes six releases in two clusters, which
// helm lists; another chart goes from canary by blue to green, past a gate after each.
func TestFromDocuments(t *testing.T) {
	r := newRig(t)
	hub, members := r.on(r.hub), r.members[:2]
	for _, m := range members {
		r.allow(m)
	}
	green := springBoot(t, "0.0.9", "green")
	hub.KubectlWith(fromDocuments(springBoot(t, "0.0.1", "first"), green), "apply", "--filename", "-")
	r.shows(r.hub, "Running 10 10 v3/v4", "get", "as", "bbcc", columns)
	r.shows(members[0], "Running 5 5 v3/v4", "get", "ad", "bbcc", columns)
	const zone = "--output=jsonpath={range .items[*]}{.metadata.name} {.spec.replicas} {.spec.minReadySeconds} {.spec.template.spec.containers[0].image} {.spec.template.metadata.labels.app} " +
		"{.spec.template.metadata.labels.version} {.spec.template.metadata.labels.sym-group} {.spec.template.metadata.labels.sym-cluster-info} {.spec.template.metadata.labels.sym-available-zone};{end}"
	images := func(first string) (one, two string) {
		return "bbcc-gz01b-blue 2 10 " + first + ":v3 bbcc v3 blue tcc-bj4-dks-test-01 bj4;bbcc-gz01b-canary 1 10 " + first + ":v4 bbcc v4 canary tcc-bj4-dks-test-01 bj4;" +
				"bbcc-gz01b-green 2 10 nginx:v3 bbcc v3 green tcc-bj4-dks-test-01 bj4;",
			"bbcc-gz01a-blue 2 10 " + first + ":v3 bbcc v3 blue tcc-bj5-dks-test-01 bj5;bbcc-gz01a-canary 1 10 " + first + ":v4 bbcc v4 canary tcc-bj5-dks-test-01 bj5;" +
				"bbcc-gz01a-green 2 10 " + first + ":v3 bbcc v3 green tcc-bj5-dks-test-01 bj5;"
	}
	one, two := images("first")
	r.shows(members[0], one, "get", "deployments", zone)
	r.shows(members[1], two, "get", "deployments", zone)
	r.shows(members[0], "green", "get", "configmap", "bbcc-gz01b-green-config", "--output=jsonpath={.data.word}")
	for i, want := range []string{"bbcc-gz01b-blue\nbbcc-gz01b-canary\nbbcc-gz01b-green", "bbcc-gz01a-blue\nbbcc-gz01a-canary\nbbcc-gz01a-green"} {
		if got := strings.TrimSpace(r.helm(members[i], "list", "--short", "--deployed")); got != want {
			t.Errorf("helm lists in %s:\n%s", members[i].name, got)
		}
	}
	if list := r.helm(members[0], "list"); strings.Count(list, "springBoot-0.0.1") != 2 || strings.Count(list, "springBoot-0.0.9") != 1 {
		t.Errorf("helm lists:\n%s", list)
	}

	// The canary goes to the first cluster alone. The green podSet there has a chart of its own,
	// and nothing to change.
	hub.KubectlWith(fromDocuments(springBoot(t, "0.0.2", "second"), green), "apply", "--filename", "-")
	charts := func(m *site) string {
		return r.on(m).Kubectl("get", "deployments", "--output=jsonpath={range .items[*]}{.metadata.name}={.spec.template.spec.containers[0].image} {end}")
	}
	for _, stage := range []struct {
		name     string
		one, two string
	}{
		{"canary", "bbcc-gz01b-blue=first:v3 bbcc-gz01b-canary=second:v4 bbcc-gz01b-green=nginx:v3 ", "bbcc-gz01a-blue=first:v3 bbcc-gz01a-canary=first:v4 bbcc-gz01a-green=first:v3 "},
		{"blue", "bbcc-gz01b-blue=second:v3 bbcc-gz01b-canary=second:v4 bbcc-gz01b-green=nginx:v3 ", "bbcc-gz01a-blue=second:v3 bbcc-gz01a-canary=second:v4 bbcc-gz01a-green=first:v3 "},
	} {
		r.shows(r.hub, "WaitingForConfirm "+stage.name, "get", "as", "bbcc", "--output=jsonpath={.status.aggrStatus.status} {.status.rollout.stage}")
		if one, two := charts(members[0]), charts(members[1]); one != stage.one || two != stage.two {
			t.Errorf("at the gate after %s:\n%s\n%s", stage.name, one, two)
		}
		if out, err := r.hub.plugin(t.Context(), "", "confirm", "bbcc", "--stage", stage.name, "--namespace", r.ns); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	one, two = images("second")
	r.shows(members[1], two, "get", "deployments", zone)
	r.shows(members[0], one, "get", "deployments", zone)
	r.shows(r.hub, "Running 10 10 v3/v4", "get", "as", "bbcc", columns)
	hub.Kubectl("delete", "as", "bbcc", "--timeout=5m")
	for _, m := range members {
		r.shows(m, "", "get", "deployments,services,replicasets,pods,secrets", "--output=name")
	}
}
