//go:build cluster

package fleet

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"testing"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
)

const stalled = `--output=jsonpath={.status.conditions[?(@.type=="Stalled")].status} {.status.conditions[?(@.type=="Stalled")].reason}`

const states = `--output=jsonpath={.status.aggrStatus.clusters[*].state}`

// installed is an AppSet in all members, for a test with an outage. The master is another
// one afterwards, which remembers nothing of it.
func installed(t *testing.T, r *rig, version string) (*rig, *cluster.Rig) {
	t.Helper()
	t.Cleanup(func() {
		if err := r.lead(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	hub := r.on(r.hub)
	r.apply(version, 2)
	r.running(3, version)
	return r, hub
}

// apply the AppSet that is in all members.
func (r *rig) apply(version string, replicas int) {
	r.Helper()
	r.on(r.hub).KubectlWith(app("shop", "InPlaceSet", version, replicas, r.names()...), "apply", "--filename", "-")
}

// names of all members.
func (r *rig) names() (out []string) {
	for _, m := range r.members {
		out = append(out, m.name)
	}
	return out
}

// running has the AppSet that is in all members be there, with so many instances in each.
func (r *rig) running(instances int, version string) {
	r.Helper()
	n := instances * len(r.members)
	r.shows(r.hub, fmt.Sprintf("Running %d %d %s", n, n, version), "get", "as", "shop", columns)
}

// unregister a member; back registers it again.
func (r *rig) unregister(m *site) (back func()) {
	r.Helper()
	r.on(r.hub).Kubectl("delete", "secret", m.name, "--namespace", releaseSpace)
	return func() {
		r.Helper()
		if err := r.join(r.Context(), m); err != nil {
			r.Fatal(err)
		}
	}
}

// remove the AppSet, and see that it leaves nothing.
func (r *rig) remove() {
	r.Helper()
	r.on(r.hub).Kubectl("delete", "as", "shop", "--timeout=5m")
	for _, m := range r.members {
		r.shows(m, "", "get", "advdeployments,tapps,pods", "--output=name")
	}
}

// carried are the writes of the hub's account in a member.
func (r *rig) carried(m *site, log *audit.Log) []audit.Request {
	r.Helper()
	var out []audit.Request
	for _, request := range r.on(m).Requests(log, audit.Filter{}) {
		if request.User == "system:serviceaccount:"+releaseSpace+":tapp-fleet" && request.IsWrite() {
			out = append(out, request)
		}
	}
	return out
}

// TestCutOff: the requests to one member are lost, and the answers of another. The third
// goes on, what is not known is told, a deletion waits, and all are as they are to be when
// the network heals.
func TestCutOff(t *testing.T) {
	r, hub := installed(t, newAlone(t), "v1")
	well, deaf, mute := r.members[0], r.members[1], r.members[2]
	hub.KubectlWith(app("other", "InPlaceSet", "v1", 2, "member1", "member2"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 6 6 v1", "get", "as", "other", columns)
	defer deaf.wire.heal()
	defer mute.wire.heal()
	deaf.wire.hold(toMember)
	mute.wire.hold(toHub)
	r.apply("v2", 3)
	r.shows(well, "Running 4 4 v2", "get", "ad", "shop", columns)
	r.shows(r.hub, "Ready Offline Offline", "get", "as", "shop", states)
	r.shows(r.hub, "Unknown 12 4 v1/v2", "get", "as", "shop", columns)
	hub.Kubectl("delete", "as", "other", "--wait=false")
	r.shows(r.hub, "True ClusterUnreachable", "get", "as", "other", stalled)
	r.shows(well, "advdeployment.workload.dmall.com/shop", "get", "advdeployments", "--output=name")
	r.shows(deaf, "Running 3 3 v1", "get", "ad", "shop", columns)
	r.shows(deaf, "Running 3 3 v1", "get", "ad", "other", columns)
	deaf.wire.heal()
	mute.wire.heal()
	hub.Kubectl("wait", "--for=delete", "as/other", "--timeout=5m")
	r.shows(r.hub, "Running 12 12 v2", "get", "as", "shop", columns)
	for _, m := range r.members {
		r.shows(m, "4", "get", "ad", "shop", "--output=jsonpath={.status.aggrStatus.available}")
		r.shows(m, "nginx:v2 nginx:v2 nginx:v2 nginx:v2", "get", "pods", "--output=jsonpath={.items[*].spec.containers[0].image}")
	}
	r.remove()
}

// signals sends them to a component of a cluster, by `kill`.
func (r *rig) signals(s *site, component string) func(name string) {
	r.Helper()
	found := regexp.MustCompile(component + ` +runs, process (\d+)`).FindStringSubmatch(r.on(s).Devcluster("status"))
	if found == nil {
		r.Fatalf("no process of %s", component)
	}
	return func(name string) {
		r.Helper()
		if out, err := exec.Command("kill", "-"+name, found[1]).CombinedOutput(); err != nil {
			r.Fatalf("%v: %s", err, out)
		}
	}
}

// TestFrozen: an API server that stands still is silent, though it takes connections.
// A member that another hub has is left alone until that one is silent.
// Of members that refuse the hub's credentials, and of those under maintenance, as much
// is told as is known, and nothing is written to them.
func TestFrozen(t *testing.T) {
	r, hub := installed(t, newAlone(t), "v1")
	kept, frozen, revoked := r.members[0], r.members[1], r.members[2]
	signal := r.signals(frozen, "kube-apiserver")
	say := func(status string) {
		t.Helper()
		hub.Kubectl("patch", "secret", kept.name, "--namespace", releaseSpace, "--patch", `{"data": {"status": `+status+`}}`)
	}
	heal := sync.OnceFunc(func() {
		t.Helper()
		signal("CONT")
		say("null")
		if err := r.join(context.WithoutCancel(t.Context()), revoked); err != nil {
			t.Error(err)
		}
	})
	defer heal()
	log := r.on(kept).FollowAudit()
	signal("STOP")
	r.on(revoked).Kubectl("delete", "serviceaccount", "tapp-fleet", "--namespace", releaseSpace)
	say(`"TWFpbnRhaW5pbmc="`) // Maintaining
	r.shows(r.hub, "Maintaining Offline Unfit", "get", "as", "shop", states)
	r.apply("v2", 3)
	r.shows(r.hub, "Unknown 12 0 v1", "get", "as", "shop", columns)
	r.shows(r.hub, "True ClusterUnfit", "get", "as", "shop", stalled)
	if wrote := r.carried(kept, log); len(wrote) > 0 {
		t.Errorf("to a member under maintenance it wrote %v", wrote)
	}
	r.shows(revoked, "Running 3 3 v1", "get", "ad", "shop", columns)
	heal()
	r.shows(r.hub, "Running 12 12 v2", "get", "as", "shop", columns)

	// Another hub has a member: nothing is written to it until that hub is silent for as
	// long as its Lease lasts.
	r.on(kept).Kubectl("patch", "lease", "tapp-fleet", "--namespace", "kube-system", "--type=merge", "--patch", `{"spec": {"holderIdentity": "another-hub"}}`)
	log = r.on(kept).FollowAudit()
	r.shows(r.hub, "Unfit Ready Ready", "get", "as", "shop", states)
	r.apply("v3", 3)
	r.shows(revoked, "Running 4 4 v3", "get", "ad", "shop", columns)
	r.shows(r.hub, "Running 12 12 v3", "get", "as", "shop", columns)
	wrote := r.carried(kept, log)
	if len(wrote) == 0 || wrote[0].Resource != "leases" {
		t.Errorf("before it had the Lease again it wrote %v", wrote)
	}
	r.remove()
}

// TestSwapped: two registrations that lead to each other's clusters are found out by the
// clusters' identity: nothing is filled, emptied or written.
func TestSwapped(t *testing.T) {
	r, hub := installed(t, newAlone(t), "v1")
	one, two := r.members[1], r.members[2]
	logs := map[*site]*audit.Log{one: r.on(one).FollowAudit(), two: r.on(two).FollowAudit()}
	swap := func(a, b *site) {
		t.Helper()
		for from, to := range map[*site]*site{one: a, two: b} {
			if err := r.register(t.Context(), from.name, to.registration); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer swap(one, two)
	swap(two, one)
	r.shows(r.hub, "Ready Mistaken Mistaken", "get", "as", "shop", states)
	for s, log := range logs {
		wrote := slices.DeleteFunc(r.carried(s, log), func(request audit.Request) bool {
			return request.Resource == "leases" // renewed by the registration before
		})
		if len(wrote) > 0 {
			t.Errorf("to %s it wrote %v before it knew", s.name, wrote)
		}
		logs[s] = r.on(s).FollowAudit()
	}
	r.shows(r.hub, "Unknown 9 3 v1", "get", "as", "shop", columns)
	hub.KubectlWith(app("shop", "InPlaceSet", "v2", 3, "member1", "member2"), "apply", "--filename", "-")
	hub.KubectlWith(app("other", "InPlaceSet", "v1", 2, "member1", "member3"), "apply", "--filename", "-")
	r.shows(r.hub, "Unknown 6 3 v1", "get", "as", "other", columns)
	r.shows(r.hub, "True ClusterMistaken", "get", "as", "shop", stalled)
	hub.Kubectl("delete", "as", "other", "--timeout=5m")
	for s, log := range logs {
		if wrote := r.carried(s, log); len(wrote) > 0 {
			t.Errorf("to %s it wrote %v", s.name, wrote)
		}
	}
	r.apply("v1", 2)
	swap(one, two)
	r.shows(r.hub, "Running 9 9 v1", "get", "as", "shop", columns)
	r.remove()
}

// TestMemberJoins: an AppSet names a cluster before there is one, which is filled once it
// is registered; what leaves the registrations is remembered.
func TestMemberJoins(t *testing.T) {
	r := newAlone(t)
	hub, late := r.on(r.hub), r.members[2]
	back := r.unregister(late)
	defer back()
	r.apply("v1", 2)
	r.shows(r.hub, "Unknown 9 6 v1", "get", "as", "shop", columns)
	back()
	r.shows(r.hub, "Running 9 9 v1", "get", "as", "shop", columns)
	r.unregister(late)
	r.shows(r.hub, "Ready Ready Unregistered", "get", "as", "shop", states)
	hub.Kubectl("delete", "as", "shop", "--wait=false")
	r.shows(r.members[0], "", "get", "advdeployments,tapps,pods", "--output=name")
	r.shows(late, "Running 3 3 v1", "get", "ad", "shop", columns)
	back()
	hub.Kubectl("wait", "--for=delete", "as/shop", "--timeout=5m")
	r.shows(late, "", "get", "advdeployments,tapps,pods", "--output=name")
}
