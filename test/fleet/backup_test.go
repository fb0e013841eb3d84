//go:build cluster

package fleet

import (
	"path/filepath"
	"strings"
	"testing"
)

// backup writes all of a cluster into a file, or of the test's namespace alone.
func (r *rig) backup(s *site, scope ...string) (file string) {
	r.Helper()
	file = filepath.Join(r.TempDir(), "backup.yaml")
	if len(scope) == 0 {
		scope = []string{"--namespace", r.ns}
	}
	r.command(s, append([]string{"backup", "--filename", file}, scope...)...)
	return file
}

// restored has a file be restored, which says of these objects what became of them.
func (r *rig) restored(s *site, file string, words ...string) {
	r.Helper()
	told := r.command(s, "restore", "--filename", file)
	for _, want := range words {
		if !strings.Contains(told, want+"\n") {
			r.Errorf("restore lacks %q:\n%s", want, told)
		}
	}
}

// command of the plugin.
func (r *rig) command(s *site, args ...string) string {
	r.Helper()
	out, err := s.Command(r.Context(), "", "kubectl-tapp", args...)
	if err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	return out
}

// charted is an AppSet of a chart in all members.
func (r *rig) charted(archive, word string) string {
	return strings.Replace(fleetRelease(archive, "word: "+word, r.names()...), "name: shop", "name: charted", 1)
}

// releases of Helm in all members, each at its version in the store, and the pods of the chart.
func (r *rig) releases() (out string) {
	r.Helper()
	for _, m := range r.members {
		out += r.on(m).Kubectl("get", "secrets", "--field-selector=type=helm.sh/release.v1", "--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion} {end}")
		out += r.on(m).Kubectl("get", "pods", "--selector=app.kubernetes.io/instance=web", "--sort-by=.metadata.name", "--output=jsonpath={.items[*].metadata.uid} ")
	}
	return out
}

// TestLoneRestored: an AdvDeployment of its own that was lost while its gate waited comes back with
// its history, takes over what it had, and waits at the same gate, which needs a new token.
func TestLoneRestored(t *testing.T) {
	r := newRig(t)
	m := r.members[1]
	in := r.on(m)
	const strategy = "upgradeType: canary|blue, needWaitingForConfirm: true"
	in.KubectlWith(lone("nginx:v1", strategy), "apply", "--filename", "-")
	r.shows(m, "Running 3 3 v1", "get", "ad", "shop", columns)
	in.KubectlWith(lone("nginx:v2", strategy), "apply", "--filename", "-")
	r.shows(m, "WaitingForConfirm 3 3 v1/v2", "get", "ad", "shop", columns)
	const uids = `--output=jsonpath={.items[*].metadata.uid}`
	waiting, before := strings.Fields(in.Kubectl("get", "ad", "shop", gate)), in.Kubectl("get", "tapps,pods", uids)
	file := r.backup(m)
	in.Kubectl("delete", "ad", "shop", "--cascade=orphan", "--timeout=5m")
	r.shows(m, "", "get", "tapps", "--output=jsonpath={.items[*].metadata.ownerReferences}")

	r.restored(m, file, "advdeployment.workload.dmall.com/shop -n "+r.ns+" restored", "tapp.apps.tkestack.io/shop-gz01-blue -n "+r.ns+" unchanged")
	r.shows(m, "WaitingForConfirm 3 3 v1/v2", "get", "ad", "shop", columns)
	now := strings.Fields(in.Kubectl("get", "ad", "shop", gate))
	if now[0] != waiting[0] || now[1] != waiting[1] || now[2] == waiting[2] {
		t.Errorf("the gate was %q and is %q", waiting, now)
	}
	if after := in.Kubectl("get", "tapps,pods", uids); after != before {
		t.Errorf("it has %s, and had %s", after, before)
	}
	in.KubectlWith(confirmation(strings.Join(now, " ")), "create", "--filename", "-")
	r.shows(m, "Running 3 3 v2", "get", "ad", "shop", columns)
	in.Kubectl("delete", "ad", "shop", "--timeout=5m")
}

// TestTombstoneRestored: a cluster was given up, and its AppSet is gone. A hub that lost the tombstone
// takes what is left there for an orphan, which stays; with the tombstone of a backup it goes.
func TestTombstoneRestored(t *testing.T) {
	r := newAlone(t)
	hub, late := r.on(r.hub), r.members[2]
	r.apply("v1", 2)
	r.running(3, "v1")
	back := r.unregister(late)
	defer back()
	r.shows(r.hub, "Ready Ready Unregistered", "get", "as", "shop", states)
	hub.Kubectl("annotate", "as", "shop", "workload.dmall.com/abandon-clusters="+late.name)
	hub.Kubectl("delete", "as", "shop", "--timeout=5m")
	tombstones := []string{"configmaps", "--namespace", releaseSpace, "--selector=workload.dmall.com/tombstone", "--output=name"}
	stone := strings.TrimSpace(hub.Kubectl(append([]string{"get"}, tombstones...)...))
	if stone == "" {
		t.Fatal("there is no tombstone")
	}
	file := r.backup(r.hub, "--all-namespaces")
	hub.Kubectl(append([]string{"delete"}, tombstones...)...)
	back()
	r.shows(late, "Running 3 3 v1", "get", "ad", "shop", columns)
	log := r.on(late).FollowAudit()
	if got := r.fleetVerb("orphans"); !strings.Contains(got, "shop") {
		t.Errorf("orphans:\n%s", got)
	}
	for _, wrote := range r.carried(late, log) {
		if wrote.Resource != "leases" {
			t.Errorf("to a cluster whose part has no AppSet it wrote %v", wrote)
		}
	}
	r.restored(r.hub, file, stone+" -n "+releaseSpace+" restored")
	r.shows(late, "", "get", "advdeployments,tapps,pods", "--output=name")
	r.shows(r.hub, "", append([]string{"get"}, tombstones...)...)
}
