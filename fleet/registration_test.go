package fleet

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

func TestRegistrations(t *testing.T) {
	legacy, convention := map[string]string{v1beta1.LabelOwner: v1beta1.OwnerLegacy}, map[string]string{v1beta1.LabelRuntime: "true", "zone": "gz"}
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "clusters", UID: "u", Labels: labels, Annotations: map[string]string{v1beta1.AnnotationClusterUID: "kept"}}
	}
	of := func(data map[string]string, labels map[string]string) *registration {
		bytes := map[string][]byte{}
		for k, v := range data {
			bytes[k] = []byte(v)
		}
		return fromSecret(&corev1.Secret{ObjectMeta: meta("GZ-1", labels), Data: bytes})
	}
	for name, c := range map[string]struct {
		got                *registration
		kubeconfig, meta   string
		maintaining        bool
		refused, uid, warn string
	}{
		"legacy Secret":            {of(map[string]string{"kubeconfig.yaml": "k", "region": "south"}, legacy), "k", "map[region:south]", false, "", "kept", ""},
		"convention":               {of(map[string]string{"kubeconfig": "k"}, convention), "k", "map[zone:gz]", false, "", "kept", ""},
		"both keys":                {of(map[string]string{"kubeconfig.yaml": "k", "kubeconfig": "l"}, convention), "k", "map[zone:gz]", false, "", "kept", ""},
		"no label value":           {of(map[string]string{"kubeconfig.yaml": "k", "ca.crt": "-----BEGIN", "a b": "c", "rack": "12"}, legacy), "k", "map[rack:12]", false, "", "kept", ""},
		"no key":                   {of(nil, legacy), "", "map[]", false, "Secret GZ-1 has no key kubeconfig.yaml", "kept", ""},
		"no key of the convention": {of(nil, convention), "", "map[zone:gz]", false, "Secret GZ-1 has no key kubeconfig", "kept", ""},
		"another label and the key of the convention": {of(map[string]string{"kubeconfig": "k"}, legacy), "", "map[]", false, "Secret GZ-1 has no key kubeconfig.yaml", "kept", ""},
		"Ready":       {of(map[string]string{"kubeconfig.yaml": "k", "status": "Ready\n"}, legacy), "k", "map[]", false, "", "kept", ""},
		"true":        {of(map[string]string{"kubeconfig.yaml": "k", "status": "true"}, legacy), "k", "map[]", false, "", "kept", ""},
		"Maintaining": {of(map[string]string{"kubeconfig.yaml": "k", "status": "Maintaining"}, legacy), "k", "map[]", true, "", "kept", ""},
		"false":       {of(map[string]string{"kubeconfig.yaml": "k", "status": "false"}, legacy), "k", "map[]", true, "", "kept", ""},
		"anything":    {of(map[string]string{"kubeconfig.yaml": "k", "status": "ready"}, legacy), "k", "map[]", true, "", "kept", `UnknownStatus: status of cluster gz-1 is "ready"; it is taken for Maintaining; give Ready or Maintaining`},
		"ConfigMap": {fromConfigMap(&corev1.ConfigMap{ObjectMeta: meta("GZ-1", legacy), Data: map[string]string{"kubeconfig.yaml": "k", "a": "b"}}), "k", "map[a:b]", false, "", "kept",
			"CredentialsInConfigMap: the credentials of cluster gz-1 are in a ConfigMap, which many may read; `kubectl tapp fleet secure gz-1` moves them into a Secret"},
	} {
		var warn string
		for _, w := range c.got.warnings {
			warn += w.reason + ": " + w.message
		}
		if r := c.got; r.name != "gz-1" || string(r.kubeconfig) != c.kubeconfig || fmt.Sprint(r.meta) != c.meta || r.maintaining != c.maintaining || r.refused != c.refused || string(r.uid) != c.uid || warn != c.warn {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

func configMap(name, kubeconfig string) object {
	return object{"metadata": object{"name": name, "namespace": "clusters", "uid": "configmap-" + name, "labels": object{"ClusterOwner": "sym-admin"}}, "data": object{"kubeconfig.yaml": kubeconfig}}
}

// TestSources: a ConfigMap works and warns; a Secret of its name wins, keeps its identity,
// and warns; the convention works beside; a refused one harms no other.
func TestSources(t *testing.T) {
	hub, a, b := newServer(t, "hub"), newServer(t, "1"), newServer(t, "2")
	var recorder *events.Recorder
	r := newRig(t, hub, func(o *Options) {
		recorder = events.NewRecorder(events.Options{Client: o.HubClient, Component: v1beta1.Component, Clock: o.Clock})
		o.Events = recorder
	})
	hub.put("configmaps/clusters/a", configMap("a", a.kubeconfig("x")))
	s := secret("b", "")
	s["metadata"].(object)["labels"] = object{v1beta1.LabelRuntime: "true"}
	s["data"] = object{"kubeconfig": secret("", b.kubeconfig("x"))["data"].(object)["kubeconfig.yaml"]}
	hub.put("secrets/clusters/b", s)
	r.register("bad", "x: [")
	r.until("registered", func() bool { return len(r.Members()) == 3 })
	r.until("a", r.state("a", v1beta1.ClusterReady, ""))
	r.until("b", r.state("b", v1beta1.ClusterReady, ""))
	r.until("bad", r.state("bad", v1beta1.ClusterUnfit, ReasonKubeconfig))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r.Fleet)
	for _, want := range []string{`tapp_fleet_clusters{state="Ready"} 2`, `tapp_fleet_clusters{state="Unfit"} 1`, `tapp_fleet_credentials_in_configmaps 1`,
		`tapp_fleet_cluster_fresh{cluster="a"} 1`, `tapp_fleet_cluster_fresh{cluster="bad"} 0`, `tapp_fleet_cluster_state{cluster="b",state="Ready"} 1`, `tapp_fleet_cluster_parts{cluster="a"} 0`} {
		if got := gather(t, registry); !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	// The same cluster by a Secret, and then only by it.
	r.register("a", a.kubeconfig("y"))
	r.until("the Secret is used", func() bool { return strings.Contains(gather(t, registry), "credentials_in_configmaps 0\n") })
	r.until("its identity moved", func() bool { return uidKept(hub, "a") == "1" })
	hub.put("configmaps/clusters/a", nil)
	r.until("a", r.state("a", v1beta1.ClusterReady, ""))
	if m, _ := r.Member("a"); m.UID != "1" {
		t.Errorf("its identity is lost: %+v", m)
	}
	recorder.Flush(t.Context())
	var told []string
	hub.mu.Lock()
	for _, r := range hub.seen {
		if r == "POST /api/v1/namespaces/clusters/events" {
			told = append(told, r)
		}
	}
	hub.mu.Unlock()
	if len(told) == 0 {
		t.Error("no event was sent")
	}
	hub.put("secrets/clusters/a", nil)
	r.until("its metrics go with it", func() bool { return !strings.Contains(gather(t, registry), `cluster="a"`) })
}

func gather(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := family.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			fmt.Fprintf(&out, "%s %v\n", name, m.GetGauge().GetValue())
		}
	}
	return out.String()
}

// TestTwice: of two registrations of one name one is used, always the same, and told.
func TestTwice(t *testing.T) {
	one, two, three := &registration{name: "a", from: corev1.ObjectReference{Kind: "ConfigMap", Name: "a"}, uid: "kept"},
		&registration{name: "a", from: corev1.ObjectReference{Kind: "Secret", Name: "a"}},
		&registration{name: "a", from: corev1.ObjectReference{Kind: "Secret", Name: "A"}}
	one.warn(ReasonInConfigMap, "x")
	got := merge([]*registration{one, two, three})["a"]
	if want := `[{RegisteredTwice cluster a is registered twice; Secret A is used, and Secret a is not} {RegisteredTwice cluster a is registered twice; Secret A is used, and ConfigMap a is not} {CredentialsInConfigMap x}]`; got != three || got.uid != "kept" || fmt.Sprint(got.warnings) != want {
		t.Errorf("got %+v", got)
	}
}

// TestNothingStays: what runs for a member ends with its registration.
func TestNothingStays(t *testing.T) {
	member := newServer(t, "1")
	r := newRig(t, newServer(t, "hub"))
	r.register("first", member.kubeconfig("x"))
	r.until("ready", r.state("first", v1beta1.ClusterReady, ""))
	before := runtime.NumGoroutine()
	for n := range 5 {
		name := fmt.Sprint("m", n)
		r.register(name, member.kubeconfig("x"))
		r.until(name, r.state(name, v1beta1.ClusterReady, ""))
		for k := range 3 {
			r.register(name, member.kubeconfig(fmt.Sprint("x", k)))
		}
		r.until(name, r.state(name, v1beta1.ClusterReady, ""))
		r.hub.put("secrets/clusters/"+name, nil)
		r.until(name+" is gone", func() bool { _, known := r.Member(name); return !known })
	}
	r.until("their goroutines end", func() bool { return runtime.NumGoroutine() <= before+4 })
}

// TestNames: a name that leads to the hub's own machine is refused when it is dialled.
func TestNames(t *testing.T) {
	check := refuseLocal(false)
	for address, want := range map[string]string{
		"127.0.0.1:6443":     "the server's name leads to 127.0.0.1, which is the hub's own machine and not a member",
		"169.254.169.254:80": "the server's name leads to 169.254.169.254, which is the hub's own machine and not a member",
		"10.0.0.1:6443":      "<nil>", "[::1]:443": "the server's name leads to ::1, which is the hub's own machine and not a member",
	} {
		if err := check(t.Context(), "tcp", address, nil); fmt.Sprint(err) != want {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

// TestListed: the clusters are among the checks of the process while they are registered.
func TestListed(t *testing.T) {
	listed := &checks{made: make(chan string, 10), gone: make(chan string, 10)}
	r := newRig(t, newServer(t, "hub"), func(o *Options) { o.Checks = listed })
	r.register("m", "x")
	if got := receive(t, listed.made); got != "cluster m Unfit: KubeconfigRefused" {
		t.Error(got)
	}
	r.hub.put("secrets/clusters/m", nil)
	if got := receive(t, listed.gone); got != "cluster m" {
		t.Error(got)
	}
}

type checks struct{ made, gone chan string }

func (c *checks) AddListedCheck(name string, check func() error) {
	c.made <- fmt.Sprint(name, " ", check())
}
func (c *checks) RemoveListedCheck(name string) { c.gone <- name }

func receive(t *testing.T, from chan string) string {
	select {
	case s := <-from:
		return s
	case <-time.After(patience):
		t.Fatal("nothing came")
		return ""
	}
}
