package webhook

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/process"
)

// prepared by flags, as a user gives them.
func prepared(t *testing.T, flags ...string) (*Admission, error) {
	t.Helper()
	a := NewAdmission("v1.2.3")
	a.REST, a.Registry = &rest.Config{Host: "http://127.0.0.1"}, prometheus.NewRegistry()
	command := process.Command(process.Spec{Name: "x", Flags: a.Flags()})
	app := newApp(command)
	command.Action = nil
	if err := app.RunContext(t.Context(), append([]string{"tapp", "x", "--listen-address=127.0.0.1:0"}, flags...)); err != nil {
		return nil, err
	}
	err := a.Prepare()
	if a.Listener != nil {
		t.Cleanup(func() { _ = a.Listener.Close() })
	}
	return a, err
}

// TestPrepare: what cannot work is said before anything starts.
func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none.pem")
	for _, c := range []struct{ flags, err string }{
		{"", "there is no certificate to serve admission with: give --tlsCertFile and --tlsKeyFile, or --tls-self-managed"},
		{"--tls-self-managed --tls-secret-namespace=ns --tls-dns-name=tapp.ns.svc", ""},
		{"--register-admission --tls-secret-namespace=ns --tls-dns-name=tapp.ns.svc", ""},
		{"--register-admission", "--register-admission needs --tls-dns-name, by which the API server shall call: give <service>.<namespace>.svc"},
		{"--register-admission --tls-dns-name=tapp.ns.svc --controllers=tapp,set", `--controllers names "set"; there are tapp, app, appset, advdeployment`},
		{"--register-admission --tls-dns-name=tapp.ns.svc --tlsCertFile=a --tlsKeyFile=b", "--register-admission needs --tlsCAFile, which the API server shall trust; without any --tls...File, TApp makes certificates of its own"},
		{"--register-admission --tls-dns-name=tapp.ns.svc --tlsCAFile=" + none, "--tlsCAFile: open " + none + ": no such file or directory"},
		{"--tls-self-managed --tls-secret-namespace=ns --tls-dns-name=tapp.ns.svc --listen-address=127.0.0.1:none", "listening for reviews: listen tcp: lookup tcp/none: unknown port"},
	} {
		a, err := prepared(t, strings.Fields(c.flags)...)
		if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
			t.Errorf("%q: got error %q, want %q", c.flags, got, c.err)
		}
		if err != nil {
			continue
		}
		if err := a.Ready(); err == nil || err.Error() != "there is no certificate yet" {
			t.Errorf("%q: got %v, want that there is no certificate yet", c.flags, err)
		}
	}
}

// TestConfigurations are those of the chart.
func TestConfigurations(t *testing.T) {
	a, err := prepared(t, "--register-admission", "--tls-secret-namespace=ns", "--tls-dns-name=tapp.ns.svc", "--webhook-configuration=mine", "--controllers=app,tapp")
	if err != nil {
		t.Fatal(err)
	}
	mutating, validating, err := a.configurations()
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal([]any{mutating, validating})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "registration.yaml"))
	if err != nil || string(got) != string(want) {
		t.Errorf("got (%v)\n%s", err, got)
	}
}

// TestConfigurationsOfKinds: each kind has its own webhooks, and only TApps are mutated.
func TestConfigurationsOfKinds(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"", "mutate.tapp.tkestack.io validate.tapp.tkestack.io"},
		{"--controllers=tapp", "mutate.tapp.tkestack.io validate.tapp.tkestack.io"},
		{"--controllers=tapp,app", "mutate.tapp.tkestack.io validate.tapp.tkestack.io validate.app.tkestack.io"},
		{"--controllers=app", "validate.app.tkestack.io"},
	} {
		flags := append(strings.Fields(c.flag), "--register-admission", "--tls-secret-namespace=ns", "--tls-dns-name=tapp.ns.svc")
		a, err := prepared(t, flags...)
		if err != nil {
			t.Fatal(err)
		}
		mutating, validating, err := a.configurations()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, w := range mutating.Webhooks {
			names = append(names, w.Name)
		}
		for _, w := range validating.Webhooks {
			names = append(names, w.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%q: got %s, want %s", c.flag, got, c.want)
		}
	}
}

// TestConfigurationsOfANamespace: who looks after one namespace does not stand in the
// way of the objects of another one.
func TestConfigurationsOfANamespace(t *testing.T) {
	a, err := prepared(t, "--register-admission", "--tls-secret-namespace=ns", "--tls-dns-name=tapp.ns.svc", "--controllers=tapp,app", "--namespace=mine")
	if err != nil {
		t.Fatal(err)
	}
	mutating, validating, err := a.configurations()
	if err != nil {
		t.Fatal(err)
	}
	selectors := []*metav1.LabelSelector{mutating.Webhooks[0].NamespaceSelector}
	for _, w := range validating.Webhooks {
		selectors = append(selectors, w.NamespaceSelector)
	}
	for _, s := range selectors {
		if got := metav1.FormatLabelSelector(s); got != "kubernetes.io/metadata.name=mine" {
			t.Errorf("got %s", got)
		}
	}
}

// TestCalledAt: through a Service, or directly.
func TestCalledAt(t *testing.T) {
	for name, want := range map[string]string{
		"tapp.ns.svc":               "ns/tapp/mutate/tapp",
		"tapp.ns.svc.cluster.local": "ns/tapp/mutate/tapp",
		"localhost":                 "https://localhost:PORT/mutate/tapp",
		"tapp.example.com":          "https://tapp.example.com:PORT/mutate/tapp",
	} {
		a, err := prepared(t, "--register-admission", "--tls-secret-namespace=ns", "--tls-dns-name="+name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := a.clientConfig("/mutate/tapp")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if c.Service != nil {
			got = c.Service.Namespace + "/" + c.Service.Name + *c.Service.Path
		} else {
			_, port, _ := strings.Cut(a.Listener.Addr().String(), ":")
			got = strings.Replace(*c.URL, port, "PORT", 1)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestRegisterIsRefused: without the permission it ends, and says what is missing.
func TestRegisterIsRefused(t *testing.T) {
	server := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`))
	})
	a := NewAdmission("v1.2.3")
	a.Register, a.REST, a.ListenAddress = true, &rest.Config{Host: server}, "127.0.0.1:0"
	a.TLS.DNSNames, a.TLS.SecretNamespace = []string{"tapp.ns.svc"}, "ns"
	if err := a.Prepare(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Listener.Close() }()
	const want = "this program may not register its webhooks: let it (create and patch on mutatingwebhookconfigurations and validatingwebhookconfigurations), or leave out --register-admission: registering the MutatingWebhookConfiguration tapp: no"
	if err := a.register(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}
