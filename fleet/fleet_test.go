package fleet

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

const selector = v1beta1.GroupName + "/fleet-id=hub"

// rig is a fleet, its hub, and a clock that the test moves.
type rig struct {
	*Fleet
	t     *testing.T
	hub   *server
	clock *clocktesting.FakeClock
	told  chan string
	end   context.CancelFunc
	ended chan struct{}
}

func hubConfig(hub *server) *rest.Config {
	return &rest.Config{Host: hub.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func newRig(t *testing.T, hub *server, change ...func(*Options)) *rig {
	t.Helper()
	client, err := corev1client.NewForConfig(hubConfig(hub))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, hub: hub, clock: clocktesting.NewFakeClock(time.Now()), told: make(chan string, 10000), ended: make(chan struct{})}
	o := Options{HubClient: client, HubWatches: client, Namespace: "clusters", Selector: selector, AllowLocal: true,
		UserAgent: "test", Metrics: NewMetrics(prometheus.NewRegistry()), Clock: r.clock}
	for _, c := range change {
		c(&o)
	}
	if r.Fleet, err = New(o); err != nil {
		t.Fatal(err)
	}
	r.probeTimeout = 300 * time.Millisecond
	r.Subscribe(func(name string) { r.told <- name }, func(c, ns, n string) { r.told <- c + "/" + ns + "/" + n })
	ctx, cancel := context.WithCancel(t.Context())
	r.end = cancel
	go func() { defer close(r.ended); r.Run(ctx) }()
	t.Cleanup(r.stop)
	return r
}

// patience is when a test gives up; a machine under load may take long.
const patience = 3 * time.Minute

// stop ends the fleet, and makes sure that all of it ends.
func (r *rig) stop() {
	r.end()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Error("the fleet does not end")
	}
}

// until waits for a condition.
func (r *rig) until(what string, condition func() bool) {
	r.t.Helper()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-r.told:
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			r.t.Log(r.hub.seen)
			for _, m := range r.Members() {
				r.t.Logf("%+v", m)
			}
			r.t.Fatalf("never: %s", what)
		}
	}
}

// untilMoving waits for a condition, and lets time pass.
func (r *rig) untilMoving(what string, condition func() bool) {
	r.t.Helper()
	r.until(what, func() bool {
		if condition() {
			return true
		}
		if r.clock.HasWaiters() {
			r.clock.Step(500 * time.Millisecond)
		}
		return false
	})
}

func (r *rig) state(name string, state v1beta1.ClusterState, reason string) func() bool {
	return func() bool {
		m, ok := r.Member(name)
		return ok && m.State == state && m.Reason == reason
	}
}

func secret(name, kubeconfig string, more ...string) object {
	data := object{"kubeconfig.yaml": base64.StdEncoding.EncodeToString([]byte(kubeconfig))}
	for i := 0; i < len(more); i += 2 {
		data[more[i]] = base64.StdEncoding.EncodeToString([]byte(more[i+1]))
	}
	return object{"metadata": object{"name": name, "namespace": "clusters", "uid": "secret-" + name, "labels": object{"ClusterOwner": "sym-admin"}}, "data": data}
}

// register a member by a Secret; what was kept with it stays.
func (r *rig) register(name, kubeconfig string, more ...string) {
	s := secret(name, kubeconfig, more...)
	r.hub.set(func() {
		if have, ok := r.hub.objects["secrets/clusters/"+name]; ok {
			s["metadata"] = have["metadata"]
		}
	})
	r.hub.put("secrets/clusters/"+name, s)
}

func adv(name string) object {
	return object{"metadata": object{"name": name, "namespace": "ns", "labels": object{v1beta1.GroupName + "/fleet-id": "hub"}}, "spec": object{}}
}

func manifest(name string, replicas int) Apply {
	m := adv(name)
	m["apiVersion"], m["kind"] = v1beta1.GroupName+"/v1beta1", "AdvDeployment"
	m["spec"] = object{"replicas": replicas}
	return Apply{Namespace: "ns", Name: name, Manifest: m}
}

// TestThinPath: a Secret registers a member, its parts are cached, and it can be written to.
func TestThinPath(t *testing.T) {
	hub, member := newServer(t, "hub"), newServer(t, "uid-1")
	member.put("advdeployments/ns/web", adv("web"))
	foreign := adv("foreign")
	foreign["metadata"].(object)["labels"] = object{}
	member.put("advdeployments/ns/foreign", foreign)
	r := newRig(t, hub)
	if _, err := r.Carrier("gz_01"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	r.register("gz-01", member.kubeconfig("x"), "zone", "gz")
	r.until("ready", r.state("GZ_01", v1beta1.ClusterReady, ""))
	m, _ := r.Member("gz-01")
	if m.UID != "uid-1" || !m.Fresh || m.AsOf.IsZero() || fmt.Sprint(m.Meta) != "map[zone:gz]" {
		t.Errorf("got %+v", m)
	}
	if !r.HasSynced() {
		t.Error("not synced")
	}
	if parts := r.Parts("ns", "web"); len(parts) != 1 || parts[0].Cluster != "gz-01" {
		t.Errorf("got %+v", parts)
	}
	if parts := r.Parts("ns", "foreign"); len(parts) != 0 {
		t.Errorf("not of this fleet: %+v", parts)
	}
	carrier, err := r.Carrier("gz-01")
	if err != nil {
		t.Fatal(err)
	}
	made, err := carrier.Apply(t.Context(), manifest("new", 3))
	if err != nil || *made.Spec.Replicas != 3 {
		t.Fatalf("got %+v, %v", made, err)
	}
	if parts := r.Parts("ns", "new"); len(parts) != 1 {
		t.Error("what was written is not there at once")
	}
	if _, err := carrier.Apply(t.Context(), manifest("new", 4)); err == nil {
		t.Error("created what exists")
	}
	again := manifest("new", 4)
	again.UID, again.Version = made.UID, made.ResourceVersion
	if made, err = carrier.Apply(t.Context(), again); err != nil || *made.Spec.Replicas != 4 {
		t.Fatalf("got %+v, %v", made, err)
	}
	if seen, err := carrier.Observe(t.Context(), "ns", "new"); err != nil || seen.UID != made.UID {
		t.Errorf("got %+v, %v", seen, err)
	}
	if err := carrier.Delete(t.Context(), "ns", "new", "other"); err == nil {
		t.Error("deleted another one")
	}
	if err := carrier.Delete(t.Context(), "ns", "new", made.UID); err != nil {
		t.Error(err)
	}
	r.until("gone", func() bool { return len(r.Parts("ns", "new")) == 0 })
	r.stop()
	if got := hub.objects["secrets/clusters/gz-01"]["metadata"].(object)["annotations"]; fmt.Sprint(got) != "map["+v1beta1.AnnotationClusterUID+":uid-1]" {
		t.Errorf("the identity was not kept: %v", got)
	}
}
