package fleet

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// ready makes a rig with members that are registered and Ready.
func ready(t *testing.T, members map[string]*server, change ...func(*Options)) *rig {
	t.Helper()
	hub := newServer(t, "hub")
	r := newRig(t, hub, change...)
	for name, s := range members {
		s.put("advdeployments/ns/web", adv("web"))
		r.register(name, s.kubeconfig("x"))
	}
	for name := range members {
		r.until(name+" is ready", r.state(name, v1beta1.ClusterReady, ""))
	}
	return r
}

// TestSilentMember: a member that hangs is Suspect, then Offline; what is known of it
// stays and is not fresh; it delays nobody; and it comes back by itself, after a list.
func TestSilentMember(t *testing.T) {
	dead, well := newServer(t, "1"), newServer(t, "2")
	r := ready(t, map[string]*server{"dead": dead, "well": well})
	began := r.clock.Now()
	dead.set(func() { dead.hang = make(chan struct{}) })
	r.untilMoving("suspect", r.state("dead", v1beta1.ClusterSuspect, "Silent"))
	if m, _ := r.Member("dead"); !m.Fresh {
		t.Error("one lost probe makes what the watch showed a moment ago old")
	}
	if _, err := r.Carrier("dead"); err != nil {
		t.Errorf("writes go on while it is Suspect: %v", err)
	}
	well2, err := r.Carrier("well")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := well2.Apply(t.Context(), manifest("x", 1)); err != nil { // the dead one hangs on
		t.Errorf("a write elsewhere: %v", err)
	}
	r.untilMoving("offline", r.state("dead", v1beta1.ClusterOffline, "Silent"))
	if took := r.clock.Since(began); took < 15*time.Second {
		t.Errorf("Offline after %s", took)
	}
	m, _ := r.Member("dead")
	if m.Message != "its API server does not answer in time" || m.Fresh {
		t.Errorf("got %+v", m)
	}
	if parts := r.Parts("ns", "web"); len(parts) != 2 {
		t.Errorf("what was known of it is forgotten: %v", parts)
	}
	var state *StateError
	if _, err := r.Carrier("dead"); !errors.As(err, &state) || err.Error() != "cluster dead is Offline: its API server does not answer in time" {
		t.Errorf("got %v", err)
	}
	// While it was away its part went.
	dead.put("advdeployments/ns/web", nil)
	dead.set(func() { dead.hang = nil })
	r.untilMoving("ready again", r.state("dead", v1beta1.ClusterReady, ""))
	if parts := r.Parts("ns", "web"); len(parts) != 1 || parts[0].Cluster != "well" {
		t.Errorf("it is Ready with what it had before: %v", parts)
	}
}

// TestStaleWatch: asOf is the watch's, not the probes'. A watch that shows nothing makes a
// member stale, and is begun anew.
func TestStaleWatch(t *testing.T) {
	member := newServer(t, "1")
	r := ready(t, map[string]*server{"m": member})
	asOf := func() time.Time { m, _ := r.Member("m"); return m.AsOf }
	first := asOf()
	r.clock.Step(30 * time.Second)
	member.bookmark()
	r.until("a bookmark is evidence", func() bool { return asOf().After(first) })
	member.set(func() { member.mute = true })
	second, probes := asOf(), member.count("GET /readyz")
	r.untilMoving("probes go on", func() bool { return member.count("GET /readyz") > probes+3 })
	if m, _ := r.Member("m"); !m.AsOf.Equal(second) || m.State != v1beta1.ClusterReady || !m.Fresh {
		t.Errorf("got %+v, want asOf %s", m, second)
	}
	lists := member.count("GET /apis/workload.dmall.com/v1beta1/advdeployments")
	r.untilMoving("listed anew", func() bool { return asOf().After(second) })
	if r.clock.Since(second) <= 2*time.Minute {
		t.Error("too early")
	}
	if member.count("GET /apis/workload.dmall.com/v1beta1/advdeployments") == lists {
		t.Error("nothing was listed")
	}
}

// TestRestored: a member that went back to an old state of its store while it was away is
// listed anew, though it was away for too short a time to be Offline.
func TestRestored(t *testing.T) {
	member := newServer(t, "1")
	r := ready(t, map[string]*server{"m": member})
	for range 3 {
		member.put("advdeployments/ns/newer", adv("newer"))
	}
	r.until("seen", func() bool { return len(r.Parts("ns", "newer")) == 1 })
	asked := member.count("GET /api/v1/namespaces/kube-system")
	member.set(func() { member.code = http.StatusTooManyRequests }) // as a refused connection, it has the same watch be tried again
	member.CloseClientConnections()
	r.until("the watch cannot be begun", func() bool { return member.count("GET /api/v1/namespaces/kube-system") > asked })
	member.put("advdeployments/ns/newer", nil)
	member.set(func() { member.code, member.version, member.events = 0, 50, nil })
	r.until("its absence is seen", func() bool { return len(r.Parts("ns", "newer")) == 0 })
}

// TestUnfit: who is alive and cannot be used says so, and comes back.
func TestUnfit(t *testing.T) {
	for code, want := range map[int][2]string{
		401: {"Unauthorized", "it does not know our credentials; they may have expired or been revoked. kubectl tapp fleet join makes new ones"},
		403: {"Forbidden", "our rights there do not suffice: "},
	} {
		member := newServer(t, "1")
		r := ready(t, map[string]*server{"m": member})
		member.set(func() { member.code = code })
		r.untilMoving("unfit", r.state("m", v1beta1.ClusterUnfit, want[0]))
		if m, _ := r.Member("m"); !strings.HasPrefix(m.Message, want[1]) || m.Fresh {
			t.Errorf("got %+v", m)
		}
		if _, err := r.Carrier("m"); err == nil {
			t.Error("it can be written to")
		}
		if len(r.Parts("ns", "web")) != 1 {
			t.Error("its parts are forgotten")
		}
		member.set(func() { member.code = 0 })
		r.untilMoving("ready", r.state("m", v1beta1.ClusterReady, ""))
		r.stop()
	}
}

func TestNoAPI(t *testing.T) {
	member := newServer(t, "1")
	member.noAPI = true
	r := newRig(t, newServer(t, "hub"))
	r.register("m", member.kubeconfig("x"))
	r.until("unfit", r.state("m", v1beta1.ClusterUnfit, ReasonNoAPI))
	if m, _ := r.Member("m"); m.Message != "it has no AdvDeployments; install tapp there with the worker" {
		t.Errorf("got %+v", m)
	}
}

// TestUnhealthy: a server that answers with an error is Silent, not Unfit.
func TestUnhealthy(t *testing.T) {
	member := newServer(t, "1")
	r := ready(t, map[string]*server{"m": member})
	member.set(func() { member.code = 500 })
	r.untilMoving("offline", r.state("m", v1beta1.ClusterOffline, "Silent"))
}

// TestCertificate: a server with a certificate for another name is not ours to use.
func TestCertificate(t *testing.T) {
	member := newServer(t, "1")
	r := newRig(t, newServer(t, "hub"))
	r.register("m", strings.Replace(member.kubeconfig("x"), "https://127.0.0.1", "https://localhost", 1))
	r.until("unfit", r.state("m", v1beta1.ClusterUnfit, ReasonCertificate))
	if m, _ := r.Member("m"); !strings.HasPrefix(m.Message, "its certificate is not one that the kubeconfig trusts: ") {
		t.Errorf("got %+v", m)
	}
}

// TestRedirect: credentials follow no redirect.
func TestRedirect(t *testing.T) {
	elsewhere, member := newServer(t, "1"), newServer(t, "1")
	member.Config.Handler = http.RedirectHandler(elsewhere.URL+"/readyz", http.StatusFound)
	r := newRig(t, newServer(t, "hub"))
	r.register("m", member.kubeconfig("x"))
	r.until("unfit", r.state("m", v1beta1.ClusterUnfit, ReasonRedirect))
	if n := elsewhere.count(""); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}
