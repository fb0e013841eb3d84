//go:build cluster

package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

// lives are public charts that live on the cluster, as podSets and by helm. In their
// values HOME is the release.
var lives = []struct {
	name string
	// workload is the Deployment that a podSet scales, and replicas the value of their
	// number.
	workload, replicas string
	install, upgrade   string
	// least objects that are compared.
	least int
}{
	{name: "tapp", workload: "HOME", replicas: "replicas", least: 12,
		install: "crds: {install: false}\nimage: {repository: tapp}\n", upgrade: "crds: {install: false}\nimage: {repository: tapp}\ncontrollers: {app: {enabled: true}}\nmetrics: {dashboard: {enabled: true}}\n"},
	{name: "cert-manager", workload: "HOME", replicas: "replicaCount", least: 35,
		install: "startupapicheck: {podAnnotations: {sim.tkestack.io/finish: Succeeded}}\n",
		upgrade: "startupapicheck: {podAnnotations: {sim.tkestack.io/finish: Succeeded}}\nwebhook: {replicaCount: 2, networkPolicy: {enabled: true}}\nprometheus: {enabled: false}\n"},
	{name: "metrics-server", workload: "HOME", replicas: "replicas", least: 3,
		install: "apiService: {create: false}\nrbac: {create: false}\n", upgrade: "apiService: {create: false}\nrbac: {create: false}\nmetrics: {enabled: true}\npodDisruptionBudget: {enabled: true, minAvailable: 1}\n"},
	{name: "ingress-nginx", workload: "HOME-controller", replicas: "controller.replicaCount", least: 9,
		install: "controller: {ingressClassResource: {name: HOME}, admissionWebhooks: {patch: {podAnnotations: {sim.tkestack.io/finish: Succeeded}}}}\n",
		upgrade: "controller: {ingressClassResource: {name: HOME}, admissionWebhooks: {patch: {podAnnotations: {sim.tkestack.io/finish: Succeeded}}}, replicaCount: 2, metrics: {enabled: true}, config: {use-gzip: \"true\"}}\n"},
	{name: "descheduler", workload: "HOME", replicas: "replicas", least: 5,
		install: "kind: Deployment\nleaderElection: {enabled: true}\n", upgrade: "kind: Deployment\nleaderElection: {enabled: true}\nservice: {enabled: true}\ndeschedulingInterval: 1h\n"},
	{name: "kwok", workload: "HOME", replicas: "replicas", least: 5,
		install: "fullnameOverride: HOME\n", upgrade: "fullnameOverride: HOME\nhostNetwork: true\n"},
}

// TestPublicChartsLive: a public chart as a podSet of an AdvDeployment goes through
// install, upgrade, drift and removal, and what the API server has of it is each time
// what it has by `helm install` and `helm upgrade` of the same chart in another namespace.
func TestPublicChartsLive(t *testing.T) {
	t.Parallel()
	ours, theirs := newRig(t), newRig(t)
	ours.control()
	for _, life := range lives {
		t.Run(life.name, func(t *testing.T) {
			t.Parallel()
			ours := &home{rig: &rig{Cluster: ours.Cluster, t: t, namespace: ours.namespace}, release: life.name + "-ours", workload: life.workload}
			theirs := &home{rig: &rig{Cluster: theirs.Cluster, t: t, namespace: theirs.namespace}, release: life.name + "-helm", workload: life.workload}
			archive, file := ours.packed(life.name)
			for i, values := range []string{life.install, life.upgrade} {
				ours.apply(archive, values, i+1)
				with := filepath.Join(t.TempDir(), "values.yaml")
				if err := os.WriteFile(with, []byte(theirs.of(values)), 0o600); err != nil {
					t.Fatal(err)
				}
				theirs.helm("upgrade", "--install", theirs.release, file, "--values", with, "--set", fmt.Sprintf("%s=%d", life.replicas, i+1))
				ours.runs(i + 1)
				if n := ours.compare(theirs); n < life.least {
					t.Errorf("compared %d objects: fewer than %d", n, life.least)
				}
			}

			// What drifts is put right: what a watch tells of, and what is looked at then.
			objects, deployment := ours.live(), "deployment/"+ours.of(life.workload)
			ours.kubectl("delete", "services", "--selector=app.kubernetes.io/managed-by=Helm,app.kubernetes.io/instance="+ours.release)
			ours.kubectl("label", deployment, "app.kubernetes.io/managed-by=me", "--overwrite")
			ours.kubectl("scale", deployment, "--replicas=7")
			cluster.Eventually(t, "what drifted is put right", func(context.Context) error {
				return cluster.When(len(ours.live()) < len(objects) || ours.scaled() != 2, "not yet")
			})
			ours.runs(2)
			ours.compare(theirs)

			ours.kubectl("delete", "advdeployment", ours.release, "--timeout=5m")
			theirs.helm("uninstall", theirs.release, "--wait")
			left := theirs.remain()
			same(t, "left as helm leaves it", ours.remain(), left)
			ours.forget()
			theirs.forget()
		})
	}
}
