//go:build cluster

package fleet

import (
	"context"
	"strings"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

// TestVerbs: the commands about AppSets tell what is, follow a change to its end, explain
// an instance in its cluster, and list what no AppSet has any more.
func TestVerbs(t *testing.T) {
	r := newRig(t)
	hub, m := r.on(r.hub), r.members[0]
	fleet := func(args ...string) string {
		t.Helper()
		out, err := r.hub.plugin(t.Context(), "", append(args, "--namespace", r.ns)...)
		if err != nil {
			out += "(failed)"
		}
		return out
	}
	has := func(got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("it lacks %q:\n%s", w, got)
			}
		}
	}
	// Ids are unique over both clusters.
	manifest := func(version string) string {
		return strings.ReplaceAll(app("verbs", "InPlaceSet", version, 2, "member1", "member2"), "verbs-gz01-blue, ", "verbs-gz01-blue, ordinals: {start: 2}, ")
	}
	hub.KubectlWith(manifest("v1"), "apply", "--filename", "-")
	r.shows(r.hub, "Invalid", "get", "as", "verbs", "--output=jsonpath={.status.aggrStatus.status}")
	has(fleet("explain", "verbs"), "ids 2 to 3 overlap with ids 2 to 3 of the same podSet in cluster member1")

	good := func(version string) string {
		first, last, _ := strings.Cut(manifest(version), "- {name: member2")
		return first + "- {name: member2" + strings.Replace(last, "{start: 2}", "{start: 4}", 1)
	}
	hub.KubectlWith(good("v1"), "apply", "--filename", "-")
	has(fleet("status", "verbs", "--watch", "--timeout", "10m"), `AppSet "verbs" successfully rolled out`)
	shows := func(want string, args ...string) {
		t.Helper()
		// A member may have been silent for a moment.
		cluster.Eventually(t, want, func(context.Context) error {
			got := fleet(args...)
			return cluster.When(!strings.Contains(got, want), got)
		})
	}
	shows("podSets: 4 of 4 as the spec says", "status", "verbs")
	r.shows(m, "verbs-gz01-blue-2 verbs-gz01-blue-3 verbs-gz01-canary-0", "get", "pods", "--output=jsonpath={.items[*].metadata.name}")
	r.shows(r.members[1], "verbs-gz01-blue-4 verbs-gz01-blue-5 verbs-gz01-canary-0", "get", "pods", "--output=jsonpath={.items[*].metadata.name}")
	has(fleet("get", "verbs", "-o", "wide"), "2-3", "4-5")
	shows("nothing waits", "explain", "verbs")

	// Paused, a change waits, and the command says so.
	has(fleet("pause", "verbs"), "appset.workload.dmall.com/verbs paused")
	hub.KubectlWith(good("v2"), "apply", "--filename", "-")
	r.shows(r.hub, "Paused", "get", "as", "verbs", "--output=jsonpath={.status.aggrStatus.status}")
	if got := fleet("explain", "verbs", "member1/verbs-gz01-blue"); strings.Contains(got, "as the spec says") {
		t.Errorf("it does not wait:\n%s", got)
	}
	has(fleet("confirm", "verbs"), "error: no gate of verbs waits: it is Paused", "(failed)")
	has(fleet("resume", "verbs"), "appset.workload.dmall.com/verbs resumed")
	has(fleet("status", "verbs", "--watch", "--timeout", "10m"), `AppSet "verbs" successfully rolled out`)
	r.shows(m, "nginx:v2 nginx:v2 nginx:v2", "get", "pods", "--output=jsonpath={.items[*].spec.containers[0].image}")

	// A part whose AppSet is another one's is an orphan.
	if got := fleet("orphans", "-o", "json"); strings.Contains(got, r.ns) {
		t.Errorf("orphans: %s", got)
	}
	r.on(m).KubectlWith(`
apiVersion: workload.dmall.com/v1beta1
kind: AdvDeployment
metadata: {name: left, labels: {workload.dmall.com/appset-uid: gone, workload.dmall.com/fleet-id: other}}
spec: {podSpec: {deployType: deployment, template: {spec: {containers: [{name: left, image: nginx}]}}}, topology: {podSets: [{name: left, replicas: 0}]}}
`, "apply", "--filename", "-")
	has(fleet("orphans"), "CLUSTER", "member1", r.ns, "left", "gone")
	if got := fleet("orphans", "--fleet-id", "fleet-test", "-o", "json"); strings.Contains(got, r.ns) {
		t.Errorf("orphans of this fleet: %s", got)
	}
	r.on(m).Kubectl("delete", "ad", "left", "--timeout=5m")
	hub.Kubectl("delete", "as", "verbs", "--timeout=5m")
}
