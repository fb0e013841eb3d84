//go:build cluster

package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// TestRetryHook: a hook that fails halts a rollout. When what it failed for is gone, a retry makes
// another revision, and the rollout ends; also within a budget.
func TestRetryHook(t *testing.T) {
	r := newRig(t)
	hub, m := r.on(r.hub), r.members[0]
	r.allow(m)
	files := web()
	// What an installation leaves is in the way of the next run.
	files["templates/hook.yaml"] = strings.ReplaceAll(files["templates/hook.yaml"], "before-hook-creation", "hook-failed")
	archive := chart(t, files)
	manifest := func(version string) string {
		return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: again}
spec:
  podSpec: {deployType: helm, chart: {rawChart: %s}}
  updateStrategy: {maxUnavailable: 1}
  clusterTopology: {clusters: [{name: member1, podSets: [{name: web, replicas: 2, version: %s}]}]}`, archive, version)
	}
	hub.KubectlWith(manifest("v1"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 2 2 v1", "get", "as", "again", columns)
	hub.KubectlWith(manifest("v2"), "apply", "--filename", "-")
	r.shows(r.hub, "Halted 2 2 v1", "get", "as", "again", columns)
	if got := hub.Kubectl("get", "as", "again", `--output=jsonpath={.status.conditions[?(@.type=="Stalled")].message}`); !strings.Contains(got, `hook pre-upgrade ConfigMap "web-hook" failed: ConfigMap "web-hook" already exists, and its delete policy keeps it. `+
		"Change the chart or its values, or try again: kubectl tapp fleet retry again") {
		t.Errorf("it says %s", got)
	}
	r.on(m).Kubectl("delete", "configmap", "web-hook")
	out, err := r.hub.plugin(t.Context(), "", "retry", "again", "--namespace", r.ns)
	if err != nil || !strings.HasPrefix(out, "appset.workload.dmall.com/again tries rollout ") {
		t.Fatalf("%v: %s", err, out)
	}
	r.shows(r.hub, "Running 2 2 v2", "get", "as", "again", columns)
	r.shows(m, "nginx:v2 3", "get", "deployment/web", "configmap/web-hook", "--output=jsonpath={.items[0].spec.template.spec.containers[0].image} {.items[1].data.revision}")
	hub.Kubectl("delete", "as", "again", "--timeout=5m")
}
