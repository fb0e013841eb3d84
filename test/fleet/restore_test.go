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
	hub.Kubectl("delete", "as", "other", "--timeout=180s")
	r.remove()
}

// TestRestoredHub: the hub is lost, and comes back from a snapshot that is one rollout old.
// It writes nothing, and says so; what it does not know of stays, and is listed. Brought up
// to date by who knows it, it goes on, and no instance is touched in all of this.
func TestRestoredHub(t *testing.T) {
	r, hub := installed(t, newSecond(t), "v1")
	r.backUp(r.hub)
	r.apply("v2", 2)
	hub.KubectlWith(app("later", "InPlaceSet", "v1", 2, r.names()...), "apply", "--filename", "-")
	r.running(3, "v2")
	r.shows(r.hub, "Running 6 6 v1", "get", "as", "later", columns)
	instances := func() string { return r.instances("shop") + r.instances("later") }
	before := instances()
	logs := map[*site]*audit.Log{}
	for _, m := range r.members {
		logs[m] = r.on(m).FollowAudit()
	}
	r.restore(r.hub)
	if err := r.lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.shows(r.hub, "True HubRestored", "get", "as", "shop", stalled)
	r.shows(r.hub, "", "get", "as", "later", "--ignore-not-found", "--output=name")
	if got := r.fleetVerb("orphans"); strings.Count(got, "later") != len(r.members) {
		t.Errorf("orphans:\n%s", got)
	}
	for m, log := range logs {
		for _, wrote := range r.carried(m, log) {
			if wrote.Resource != "leases" {
				t.Errorf("to %s it wrote %v", m.name, wrote)
			}
		}
	}
	r.apply("v2", 2)
	hub.KubectlWith(app("later", "InPlaceSet", "v1", 2, r.names()...), "apply", "--filename", "-")
	r.running(3, "v2")
	r.shows(r.hub, "Running 6 6 v1", "get", "as", "later", columns)
	if after := instances(); after != before {
		t.Errorf("the instances were %s\nand are %s", before, after)
	}
	hub.Kubectl("delete", "as", "later", "--timeout=180s")
	r.remove()
	if err := r.lead(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
