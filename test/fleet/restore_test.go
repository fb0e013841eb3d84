//go:build cluster

package fleet

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tkestack.io/tapp/test/audit"
)

// store is the directory of a cluster's etcd.
func (s *site) store() string { return filepath.Join(filepath.Dir(s.Kubeconfig), "data", "etcd") }

// backUp the store of a cluster, as a snapshot of the disk does.
func (r *rig) backUp(s *site) {
	r.Helper()
	signal := r.signals(s, "etcd")
	signal("STOP")
	r.shell("cp", "--recursive", s.store(), s.store()+".backup")
	signal("CONT")
}

// restore the store of a cluster. All its components are restarted with it, by etcd's
// documents.
func (r *rig) restore(s *site, components ...string) {
	r.Helper()
	for _, component := range append(components, "kube-apiserver", "etcd") {
		r.on(s).Devcluster("stop", component)
	}
	r.shell("bash", "-c", `rm -r "$0" && mv "$0.backup" "$0"`, s.store())
	r.on(s).Devcluster("up")
}

func (r *rig) shell(command string, args ...string) {
	r.Helper()
	if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
}

// TestRestoredMember: a member that went back to an old state of its store is brought to
// where it is to be, and nothing is deleted for what it lacks.
func TestRestoredMember(t *testing.T) {
	r, hub := installed(t, newSecond(t), "v1")
	restored := r.members[1]
	r.backUp(restored)
	r.apply("v2", 3)
	hub.KubectlWith(app("other", "InPlaceSet", "v1", 2, "member1", "member2"), "apply", "--filename", "-")
	r.running(4, "v2")
	r.shows(r.hub, "Running 6 6 v1", "get", "as", "other", columns)
	r.restore(restored, "kube-scheduler", "kube-controller-manager", "kwok")
	if err := restored.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.shows(restored, "Running 4 4 v2", "get", "ad", "shop", columns)
	r.shows(restored, "Running 3 3 v1", "get", "ad", "other", columns)
	r.running(4, "v2")
	r.shows(r.hub, "Running 6 6 v1", "get", "as", "other", columns)
	hub.Kubectl("delete", "as", "other", "--timeout=5m")
	r.remove()
}

// TestRestoredHub: the hub is lost, and comes back from a snapshot that is one rollout old.
// It writes nothing, and says so; what it does not know of stays, and is listed. Brought up
// to date by who knows it, and by a backup that is newer than the snapshot, it goes on where
// it was. What changed after the backup waits until a human has looked. No instance is
// touched in all of this.
func TestRestoredHub(t *testing.T) {
	r, hub := installed(t, newSecond(t), "v1")
	r.backUp(r.hub)
	r.apply("v2", 2)
	const gates = "upgradeType: canary|blue|green, needWaitingForConfirm: true, maxConcurrentClusters: 2"
	newer := func(version string) string { return app("newer", "InPlaceSet", version, 1, r.names()...) }
	hub.KubectlWith(walked("nginx:v1", gates), "apply", "--filename", "-")
	hub.KubectlWith(newer("v1"), "apply", "--filename", "-")
	files := web()
	files["templates/NOTES.txt"] = "of " + r.ns + "\n" // no other test has this archive
	archive := chart(t, files)
	for _, m := range r.members {
		r.allow(m)
	}
	hub.KubectlWith(r.charted(archive, "one"), "apply", "--filename", "-")
	r.running(3, "v2")
	r.shows(r.hub, "Running 10 10 v1", "get", "as", "walk", columns)
	r.shows(r.hub, "Running 4 4 v1", "get", "as", "newer", columns)
	r.shows(r.hub, "Running 4 4 v1", "get", "as", "charted", columns)
	stored := r.on(r.members[0]).Kubectl("get", "ad", "charted", "--output=jsonpath={.spec.topology.podSets[0].chart.secretRef.name}")
	hub.KubectlWith(walked("nginx:v2", gates), "apply", "--filename", "-")
	r.shows(r.hub, "WaitingForConfirm 10 10 v1/v2", "get", "as", "walk", columns)
	waiting := strings.Fields(hub.Kubectl("get", "as", "walk", gate)) // id, stage, token
	file := filepath.Join(t.TempDir(), "all.yaml")
	if got, want := r.command(r.hub, "backup", "--all-namespaces", "--filename", file), "Warning: the backup has the credentials of 2 clusters: keep it as you keep them\n"; got != want {
		t.Errorf("backup says\n%s\nwant %s", got, want)
	}
	hub.KubectlWith(newer("v2"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 4 4 v2", "get", "as", "newer", columns)
	instances := func() string {
		return r.instances("shop") + r.instances("walk") + r.instances("newer") + r.releases()
	}
	before := instances()
	logs := map[*site]*audit.Log{}
	for _, m := range r.members {
		logs[m] = r.on(m).FollowAudit()
	}
	rests := func() {
		t.Helper()
		for m, log := range logs {
			for _, wrote := range r.carried(m, log) {
				if wrote.Resource != "leases" {
					t.Errorf("to %s it wrote %v", m.name, wrote)
				}
			}
		}
	}
	if err := r.hub.halt(); err != nil { // it went with its cluster
		t.Fatal(err)
	}
	r.restore(r.hub)
	if err := r.lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.shows(r.hub, "True HubRestored", "get", "as", "shop", stalled)
	r.shows(r.hub, "", "get", "as", "walk", "--ignore-not-found", "--output=name")
	if got := r.fleetVerb("orphans"); strings.Count(got, "walk") != len(r.members) || strings.Count(got, "newer") != len(r.members) {
		t.Errorf("orphans:\n%s", got)
	}
	rests()

	hub.Kubectl("delete", "secret", "member2", "--namespace", releaseSpace)
	told := r.command(r.hub, "restore", "--filename", file)
	for _, want := range []string{
		"secret/member1 -n tapp-system unchanged", "secret/member2 -n tapp-system restored", "appset.workload.dmall.com/shop -n " + r.ns + " unchanged",
		"appset.workload.dmall.com/walk -n " + r.ns + " restored", "controllerrevision.apps/walk-rollout -n " + r.ns + " restored", "appset.workload.dmall.com/charted -n " + r.ns + " restored", "secret/" + stored + " -n tapp-charts restored",
	} {
		if !strings.Contains(told, want+"\n") {
			t.Errorf("restore lacks %q:\n%s", want, told)
		}
	}
	r.shows(r.hub, "WaitingForConfirm 10 10 v1/v2", "get", "as", "walk", columns)
	r.shows(r.hub, "Ready Ready", "get", "as", "walk", states)
	r.shows(r.hub, "Running 4 4 v1", "get", "as", "charted", columns)
	if now := strings.Fields(hub.Kubectl("get", "as", "walk", gate)); now[0] != waiting[0] || now[1] != waiting[1] || now[2] == waiting[2] {
		t.Errorf("the gate was %q and is %q", waiting, now)
	}
	r.shows(r.hub, "True HubRestored", "get", "as", "newer", stalled)
	hub.KubectlWith(newer("v2"), "apply", "--filename", "-")
	hub.Kubectl("annotate", "as", "newer", "workload.dmall.com/accept-generation=2")
	r.apply("v2", 2)
	r.running(3, "v2")
	r.shows(r.hub, "Running 4 4 v2", "get", "as", "newer", columns)
	if after := instances(); after != before {
		t.Errorf("the instances were %s\nand are %s", before, after)
	}
	hub.KubectlWith(r.charted(archive, "two"), "apply", "--filename", "-")
	for _, m := range r.members {
		r.shows(m, "two", "get", "configmap", "web-config", "--output=jsonpath={.data.word}")
	}
	if got := r.fleetVerb("undo", "walk"); !strings.Contains(got, "goes back to revision 1 (v1)") {
		t.Errorf("undo says\n%s", got)
	}
	r.shows(r.hub, "Running 10 10 v1", "get", "as", "walk", columns)
	hub.Kubectl("delete", "as", "walk", "newer", "charted", "--timeout=5m")
	r.remove()
	if err := r.lead(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
