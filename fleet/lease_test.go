package fleet

import (
	"context"
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/health"
)

const leaseKey = "leases/kube-system/" + v1beta1.MemberLease

func holder(s *server) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[leaseKey] == nil {
		return ""
	}
	by, _ := s.objects[leaseKey]["spec"].(object)["holderIdentity"].(string)
	return by
}

func heldBy(hub string) object {
	return object{"metadata": object{"name": v1beta1.MemberLease, "namespace": "kube-system", "labels": object{}}, "spec": object{"holderIdentity": hub}}
}

// TestLease: a hub takes a free Lease, and renews it while it leads. While another hub
// renews it nothing is written to the member; when that ends, the member is ours.
func TestLease(t *testing.T) {
	m := newServer(t, "1")
	leads := make(chan bool, 1)
	leads <- true
	r := newRig(t, newServer(t, "hub"), func(o *Options) {
		o.HubUID = "our-hub"
		o.Leading = func() bool {
			now := <-leads
			leads <- now
			return now
		}
	})
	r.register("m", m.kubeconfig("x"))
	r.until("ready", r.state("m", v1beta1.ClusterReady, ""))
	r.until("ours", func() bool { r.clock.Step(time.Second); return holder(m) == "our-hub" })

	writes := func() int {
		return m.count("PUT /apis/coordination.k8s.io") + m.count("POST /apis/coordination.k8s.io")
	}
	before := writes()
	r.until("renewed", func() bool { r.clock.Step(time.Second); return writes() > before })

	// A standby of the hub does not renew it.
	<-leads
	leads <- false
	before = writes()
	probes := m.count("GET /readyz")
	r.until("probes go on", func() bool { r.clock.Step(time.Second); return m.count("GET /readyz") > probes+6 })
	if got := writes() - before; got > 0 {
		t.Errorf("who does not lead wrote the Lease %d times", got)
	}
	<-leads
	leads <- true

	// Another hub renews it, again and again.
	renew := func() { m.put(leaseKey, heldBy("other-hub")) }
	renew()
	r.until("the other's", func() bool {
		r.clock.Step(time.Second)
		renew()
		return r.state("m", v1beta1.ClusterUnfit, ReasonOtherFleet)()
	})
	if now, _ := r.Member("m"); now.Fresh || now.Message != "another fleet controller writes here, that of the hub with the UID other-hub: end it, or register this cluster with one hub only" {
		t.Errorf("told is %+v", now)
	}
	probes = m.count("GET /readyz")
	r.until("it stays so", func() bool { r.clock.Step(time.Second); renew(); return m.count("GET /readyz") > probes+6 })
	if _, err := r.Carrier("m"); err == nil || holder(m) != "other-hub" {
		t.Errorf("a carrier to the other's member: %v; the Lease is %s's", err, holder(m))
	}
	// It ends.
	r.until("ours again", func() bool { r.clock.Step(time.Second); return holder(m) == "our-hub" })
	r.until("ready again", r.state("m", v1beta1.ClusterReady, ""))
}

// TestLeaseBeforeWrites: between renewals a write makes sure that the member is still ours;
// an account without rights to Leases is told of them.
func TestLeaseBeforeWrites(t *testing.T) {
	m := newServer(t, "1")
	r := newRig(t, newServer(t, "hub"), func(o *Options) { o.HubUID = "our-hub" })
	r.register("m", m.kubeconfig("x"))
	r.until("ready", r.state("m", v1beta1.ClusterReady, ""))
	r.until("ours", func() bool { r.clock.Step(time.Second); return holder(m) == "our-hub" })
	carrier, err := r.Carrier("m")
	if err != nil {
		t.Fatal(err)
	}
	m.put(leaseKey, heldBy("other-hub"))
	r.clock.Step(5 * time.Second) // and 10 more are what the request may take
	apply := Apply{Namespace: "ns", Name: "a", Manifest: object{"metadata": object{"name": "a", "namespace": "ns", "labels": object{}}}}
	_, err = carrier.Apply(context.WithoutCancel(t.Context()), apply)
	if err == nil || !strings.Contains(err.Error(), "other-hub") || m.count("PATCH /apis/workload.dmall.com") != 0 {
		t.Errorf("got %v, and %d writes", err, m.count("PATCH"))
	}
}

// TestLeaseOfARestoredStore: the store of a member goes back, and its watch, which waits for
// a version to come, shows nothing. The Lease tells, long before the watch counts as dumb.
func TestLeaseOfARestoredStore(t *testing.T) {
	for name, back := range map[string]func(*server, object){
		"to an older Lease":          func(m *server, was object) { m.objects[leaseKey] = was },
		"to before there was any":    func(m *server, _ object) { delete(m.objects, leaseKey) },
		"and somebody else wrote it": func(m *server, _ object) { m.version = 50; m.store(leaseKey, heldBy("our-hub")); m.version = 100 },
	} {
		t.Run(name, func(t *testing.T) {
			m := newServer(t, "1")
			part := object{"metadata": object{"name": "a", "namespace": "ns", "labels": object{"fleet": "x"}}, "spec": object{"serviceName": "old"}}
			m.put("advdeployments/ns/a", part)
			r := newRig(t, newServer(t, "hub"), func(o *Options) { o.HubUID, o.Selector = "our-hub", "fleet=x" })
			r.register("m", m.kubeconfig("x"))
			r.until("ours", func() bool { r.clock.Step(time.Second); return holder(m) == "our-hub" })
			r.until("ready", r.state("m", v1beta1.ClusterReady, ""))
			shows := func(name string) func() bool {
				return func() bool {
					parts := r.Parts("ns", "a")
					return len(parts) == 1 && parts[0].Read().Spec.ServiceName == name
				}
			}
			r.until("the old part", shows("old"))
			was := map[string]object{}
			m.set(func() {
				was[leaseKey], was["advdeployments/ns/a"] = clone(m.objects[leaseKey]), clone(m.objects["advdeployments/ns/a"])
			})
			renewed := func() int { return m.count("PUT /apis/coordination.k8s.io") }
			before := renewed()
			r.until("renewed", func() bool { r.clock.Step(time.Second); return renewed() > before })
			part["spec"] = object{"serviceName": "new"}
			m.put("advdeployments/ns/a", part)
			r.until("the new part", shows("new"))

			m.set(func() {
				m.mute, m.objects["advdeployments/ns/a"] = true, was["advdeployments/ns/a"]
				back(m, was[leaseKey])
			})
			began := r.clock.Now()
			r.until("the old part again", func() bool { r.clock.Step(time.Second); return shows("old")() })
			if took := r.clock.Since(began); took >= health.FreshWithin {
				t.Errorf("it was noticed after %v of the rig's clock, which the watch alone would have done", took)
			}
			r.until("ours again", func() bool {
				r.clock.Step(time.Second)
				return holder(m) == "our-hub" && r.state("m", v1beta1.ClusterReady, "")()
			})
		})
	}
}
