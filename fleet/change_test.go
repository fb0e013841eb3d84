package fleet

import (
	"fmt"
	"strings"
	"testing"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

func uidKept(hub *server, name string) string {
	hub.mu.Lock()
	defer hub.mu.Unlock()
	annotations, _ := hub.objects["secrets/clusters/"+name]["metadata"].(object)["annotations"].(object)
	return fmt.Sprint(annotations[v1beta1.AnnotationClusterUID])
}

func (r *rig) keepUID(name string, uid any) {
	r.hub.mu.Lock()
	o := clone(r.hub.objects["secrets/clusters/"+name])
	r.hub.mu.Unlock()
	o["metadata"].(object)["annotations"] = object{v1beta1.AnnotationClusterUID: uid}
	if uid == nil {
		delete(o["metadata"].(object), "annotations")
	}
	r.hub.put("secrets/clusters/"+name, o)
}

// TestSwapped: kubeconfigs that lead to each other's cluster fill nobody, and nothing of
// the one is read as absence in the other.
func TestSwapped(t *testing.T) {
	a, b := newServer(t, "1"), newServer(t, "2")
	r := ready(t, map[string]*server{"a": a, "b": b})
	b.put("advdeployments/ns/only-b", adv("only-b"))
	r.until("seen", func() bool { return len(r.Parts("ns", "only-b")) == 1 })
	writes := a.count("PATCH") + b.count("PATCH")
	r.register("a", b.kubeconfig("x"))
	r.register("b", a.kubeconfig("x"))
	// Though the old connections are well, the registrations are what counts.
	r.until("a is told", r.state("a", v1beta1.ClusterMistaken, ReasonMistaken))
	r.until("b is told", r.state("b", v1beta1.ClusterMistaken, ReasonMistaken))
	if parts := r.Parts("ns", "only-b"); len(parts) != 1 || parts[0].Cluster != "b" {
		t.Errorf("got %+v", parts)
	}
	// A new process has nothing else than the swapped ones.
	r.stop()
	r = newRig(t, r.hub)
	for _, name := range []string{"a", "b"} {
		r.until(name, r.state(name, v1beta1.ClusterMistaken, ReasonMistaken))
		if _, err := r.Carrier(name); err == nil {
			t.Errorf("%s can be written to", name)
		}
	}
	m, _ := r.Member("a")
	if want := "the cluster that answers has the UID 2, and the registered one 1; if that is right: `kubectl tapp fleet accept a`"; m.Message != want || m.UID != "1" {
		t.Errorf("got %+v", m)
	}
	if len(r.Parts("ns", "web")) != 0 || a.count("PATCH")+b.count("PATCH") != writes {
		t.Error("something was read or written")
	}
	// Accepting makes it right, without a restart: by its UID, and by taking the old one off.
	r.keepUID("a", "2")
	r.keepUID("b", nil)
	r.untilMoving("a is accepted", r.state("a", v1beta1.ClusterReady, ""))
	r.untilMoving("b is accepted", r.state("b", v1beta1.ClusterReady, ""))
	if uidKept(r.hub, "b") != "1" {
		t.Errorf("kept %s", uidKept(r.hub, "b"))
	}
}

// TestRebuilt: a cluster that was rebuilt at the same address is empty, and is not filled.
func TestRebuilt(t *testing.T) {
	member := newServer(t, "1")
	r := ready(t, map[string]*server{"m": member})
	carrier, err := r.Carrier("m")
	if err != nil {
		t.Fatal(err)
	}
	member.set(func() { member.uid = "2"; member.objects = map[string]object{} })
	member.CloseClientConnections()
	if _, err := carrier.Apply(t.Context(), manifest("web", 1)); err == nil {
		t.Error("it was filled")
	}
	r.until("mistaken", r.state("m", v1beta1.ClusterMistaken, ReasonMistaken))
	r.untilMoving("probed again", func() bool { return member.count("GET /api/v1/namespaces/kube-system") > 8 })
	if len(r.Parts("ns", "web")) != 1 || member.count("PATCH") != 0 {
		t.Error("its absence was believed")
	}
	if m, _ := r.Member("m"); m.Fresh {
		t.Error("it is fresh")
	}
	r.keepUID("m", "2")
	r.untilMoving("accepted", r.state("m", v1beta1.ClusterReady, ""))
	if len(r.Parts("ns", "web")) != 0 {
		t.Error("what is not there is shown")
	}
}

// TestMoved: a new kubeconfig connects beside the old one, and takes its place once it has
// listed; one that leads nowhere takes no place.
func TestMoved(t *testing.T) {
	member, dead := newServer(t, "1"), newServer(t, "1")
	r := ready(t, map[string]*server{"m": member})
	dead.set(func() { dead.hang = make(chan struct{}) })
	r.register("m", dead.kubeconfig("x"))
	r.untilMoving("told", func() bool {
		m, _ := r.Member("m")
		return m.Message == "its new kubeconfig is not used yet: its API server does not answer in time" || m.State != v1beta1.ClusterReady
	})
	m, _ := r.Member("m")
	if m.State != v1beta1.ClusterReady || !m.Fresh || len(r.Parts("ns", "web")) != 1 {
		t.Errorf("got %+v", m)
	}
	// Another address of the same cluster.
	other := newServer(t, "1")
	other.put("advdeployments/ns/web", adv("web"))
	other.put("advdeployments/ns/more", adv("more"))
	r.register("m", other.kubeconfig("x"))
	r.until("took its place", func() bool { return len(r.Parts("ns", "more")) == 1 })
	r.until("ready", func() bool {
		m, _ := r.Member("m")
		return m.State == v1beta1.ClusterReady && m.Fresh && m.Message == ""
	})
	carrier, err := r.Carrier("m")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := carrier.Apply(t.Context(), manifest("new", 1)); err != nil || other.count("PATCH") != 1 || member.count("PATCH") != 0 {
		t.Errorf("written to the wrong end: %v", err)
	}
}

// TestLifecycle: to Maintaining and back, refused and mended, dropped and back; each
// without a restart, and with its parts remembered.
func TestLifecycle(t *testing.T) {
	member := newServer(t, "1")
	r := ready(t, map[string]*server{"m": member})
	r.register("m", member.kubeconfig("x"), "status", "Maintaining", "zone", "gz")
	r.until("maintaining", r.state("m", v1beta1.ClusterMaintaining, ReasonMaintained))
	r.until("its sessions ended", func() bool {
		probes := member.count("GET /readyz")
		r.clock.Step(probeEvery)
		return member.count("GET /readyz") == probes
	})
	if m, _ := r.Member("m"); m.Meta["zone"] != "gz" || m.Fresh || len(r.Parts("ns", "web")) != 1 {
		t.Errorf("got %+v", m)
	}
	if _, err := r.Carrier("m"); err == nil || err.Error() != "cluster m is Maintaining: its registration says that it is under maintenance" {
		t.Errorf("got %v", err)
	}
	r.register("m", member.kubeconfig("x"))
	r.until("ready", r.state("m", v1beta1.ClusterReady, ""))

	r.register("m", strings.Replace(member.kubeconfig("x"), `"token":"x"`, `"exec":{"command":"sh","apiVersion":"client.authentication.k8s.io/v1"}`, 1))
	r.until("unfit", r.state("m", v1beta1.ClusterUnfit, ReasonKubeconfig))
	if m, _ := r.Member("m"); m.Message != `user "u" has exec, which would run a program in the controller` || len(r.Parts("ns", "web")) != 1 {
		t.Errorf("got %+v", m)
	}
	r.register("m", member.kubeconfig("y"))
	r.until("ready", r.state("m", v1beta1.ClusterReady, ""))

	r.hub.put("secrets/clusters/m", nil)
	r.until("dropped", r.state("m", v1beta1.ClusterUnregistered, ReasonUnregistered))
	if len(r.Parts("ns", "web")) != 1 || len(r.Members()) != 0 {
		t.Errorf("parts %v, members %v", r.Parts("ns", "web"), r.Members())
	}
	if _, err := r.Carrier("m"); err == nil || err.Error() != "cluster m is Unregistered: nothing registers it any more" {
		t.Errorf("got %v", err)
	}
	// Back under its name, it has to be the same cluster.
	stranger := newServer(t, "2")
	s := secret("m", stranger.kubeconfig("x"))
	s["metadata"].(object)["uid"] = "another secret"
	r.hub.put("secrets/clusters/m", s)
	r.until("mistaken", r.state("m", v1beta1.ClusterMistaken, ReasonMistaken))
	s["data"] = secret("m", member.kubeconfig("x"))["data"]
	r.hub.put("secrets/clusters/m", s)
	r.untilMoving("ready", r.state("m", v1beta1.ClusterReady, ""))
	member.put("advdeployments/ns/web", nil)
	r.until("its part is gone", func() bool { return len(r.Parts("ns", "web")) == 0 })
	r.hub.put("secrets/clusters/m", nil)
	r.until("forgotten, as it has no parts", func() bool { _, known := r.Member("m"); return !known })
}

// TestSelf: the hub itself is a member without a kubeconfig.
func TestSelf(t *testing.T) {
	hub := newServer(t, "hub")
	hub.put("advdeployments/ns/web", adv("web"))
	r := newRig(t, hub, func(o *Options) {
		o.SelfCluster, o.SelfConfig, o.AllowLocal = "Local_1", hubConfig(hub), false
	})
	r.until("ready", r.state("local-1", v1beta1.ClusterReady, ""))
	if m, _ := r.Member("local-1"); m.UID != "hub" || !m.Fresh {
		t.Errorf("got %+v", m)
	}
	// Its name is taken.
	r.register("local-1", newServer(t, "2").kubeconfig("x"))
	r.register("other", "")
	r.until("other", r.state("other", v1beta1.ClusterUnfit, ReasonKubeconfig))
	if m, _ := r.Member("local-1"); m.UID != "hub" || m.State != v1beta1.ClusterReady {
		t.Errorf("got %+v", m)
	}
}

// TestStandby: who does not lead writes nothing to the hub, and a member that was never
// heard waits for the one who does.
func TestStandby(t *testing.T) {
	member := newServer(t, "1")
	r := newRig(t, newServer(t, "hub"), func(o *Options) { o.Leading = func() bool { return false } })
	r.register("m", member.kubeconfig("x"))
	r.until("waits", r.state("m", v1beta1.ClusterUnfit, ReasonNotKept))
	if r.hub.count("PATCH") != 0 {
		t.Error("a standby wrote")
	}
	r.keepUID("m", "1")
	r.untilMoving("ready", r.state("m", v1beta1.ClusterReady, ""))
}

// TestNotKept: without its identity on the hub a member is not used: after a restart
// anybody could answer in its place.
func TestNotKept(t *testing.T) {
	hub, member := newServer(t, "hub"), newServer(t, "1")
	hub.readOnly = true
	r := newRig(t, hub)
	r.register("m", member.kubeconfig("x"))
	r.until("not used", r.state("m", v1beta1.ClusterUnfit, ReasonNotKept))
	if m, _ := r.Member("m"); m.Message != "its identity cannot be kept with its registration: Forbidden as the test said" || m.UID != "" {
		t.Errorf("got %+v", m)
	}
	if n := member.count("GET /apis"); n != 0 {
		t.Errorf("%d requests for its parts", n)
	}
	hub.set(func() { hub.readOnly = false })
	r.untilMoving("ready", r.state("m", v1beta1.ClusterReady, ""))
}

// TestOptions: what is missing is told.
func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"the namespace of the registered clusters is not known: give --cluster-namespace": {},
		"the fleet has no label by which its parts are known":                             {Namespace: "x"},
		"the hub is to be a member, and how to reach it is not known":                     {Namespace: "x", Selector: "a=b", SelfCluster: "c"},
	} {
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
