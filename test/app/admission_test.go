//go:build cluster

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/urfave/cli/v2"

	"tkestack.io/tapp/webhook"
)

// startAdmission runs `tapp webhook` for these kinds until the test ends. It registers
// itself under the name of the rig's namespace.
func (r *rig) startAdmission(kinds string) (stop func()) {
	r.Helper()
	app := &cli.App{Name: "tapp", ErrWriter: io.Discard, Commands: []*cli.Command{webhook.Command("app-test")}, ExitErrHandler: func(*cli.Context, error) {}}
	ctx, cancel := context.WithCancel(context.Background()) // not the test's, which ends before its cleanups
	ended := make(chan error, 1)
	go func() {
		ended <- app.RunContext(ctx, []string{"tapp", "webhook", "--kubeconfig=" + r.Kubeconfig, "--listen-address=127.0.0.1:0", "--metrics-address=",
			"--admission-shutdown-delay=0", "--register-admission", "--controllers=" + kinds, "--webhook-configuration=" + r.NS,
			"--tls-dns-name=localhost", "--tls-secret-namespace=" + r.NS})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.Errorf("admission ended with %v", err)
		}
	})
	r.Cleanup(func() {
		stop()
		r.Kubectl("delete", "--ignore-not-found", "mutatingwebhookconfigurations,validatingwebhookconfigurations", r.NS)
	})
	return stop
}

// registered are the webhooks of both configurations, as JSON that kubectl prints,
// by name. How they are called is left out, but for the path.
func registered(t *testing.T, list string) map[string]any {
	t.Helper()
	type webhook = map[string]any
	var configurations struct {
		Items []struct{ Webhooks []webhook }
	}
	if err := json.Unmarshal([]byte(list), &configurations); err != nil {
		t.Fatal(err, list)
	}
	out := map[string]any{}
	for _, c := range configurations.Items {
		for _, w := range c.Webhooks {
			to := w["clientConfig"].(map[string]any)
			if service, ok := to["service"].(map[string]any); ok {
				w["clientConfig"] = service["path"]
			} else if u, err := url.Parse(to["url"].(string)); err == nil {
				w["clientConfig"] = u.Path
			}
			out[w["name"].(string)] = w
		}
	}
	return out
}

// TestRegistration: what registers itself is what the chart has, with Apps and
// without.
func TestRegistration(t *testing.T) {
	r := newRig(t, "")
	rendered, err := chart(t.Context(), r.Cluster, "webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "webhooks.yaml")
	if err := os.WriteFile(path, []byte(rendered), 0o600); err != nil {
		t.Fatal(err)
	}
	// The API server fills in what both leave out.
	want := registered(t, r.Kubectl("apply", "--dry-run=server", "--output=json", "--filename", path))
	if len(want) != 3 || want["validate.app.tkestack.io"] == nil {
		t.Fatalf("the chart has %v", want)
	}
	is := func(what string, want map[string]any) {
		t.Helper()
		r.Eventually(what, func(context.Context) error {
			out, err := r.TryKubectl("get", "--output=json", "mutatingwebhookconfigurations/"+r.NS, "validatingwebhookconfigurations/"+r.NS)
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			if got := registered(t, out); !reflect.DeepEqual(got, want) {
				return fmt.Errorf("got %v, want %v", got, want)
			}
			return nil
		})
	}
	stop := r.startAdmission("tapp,app")
	is("both kinds are registered", want)
	stop()
	delete(want, "validate.app.tkestack.io")
	r.startAdmission("tapp")
	is("only TApps are registered", want)
}

// TestAdmission: the webhook behind the API server, with its own registration, by
// what kubectl says.
func TestAdmission(t *testing.T) {
	r := newRig(t, "")
	r.startAdmission("tapp,app")

	manifest := func(name, spec string) string {
		path := filepath.Join(t.TempDir(), name+".yaml")
		content := fmt.Sprintf("apiVersion: appcontroller.k8s.io/v1\nkind: App\nmetadata: {name: %s}\nspec: %s\n", name, spec)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := manifest("bad", "{deploymentTemplate: {name: Web, ports: [{containerPort: 80}, {containerPort: 80}]}}")
	r.Eventually("a bad App is refused", func(context.Context) error {
		out, err := r.TryKubectl("create", "--dry-run=server", "-f", bad)
		for _, want := range []string{
			`The App "bad" is invalid:`,
			`* spec.deploymentTemplate.name: Invalid value: "Web": it is no DNS label`,
			`* spec.deploymentTemplate.image: Required value: the Deployment has a name and no image`,
			`* spec.deploymentTemplate.ports[1]: Duplicate value: "80/TCP"`,
		} {
			if err == nil || !strings.Contains(out, want) {
				return fmt.Errorf("%s, want %q: %s", fmt.Sprint(err), want, out)
			}
		}
		return nil
	})
	r.Kubectl("create", "-f", manifest("first", "{deploymentTemplate: {name: web, image: nginx:1.25, replicas: 1}, serviceTemplate: {name: web}}"))
	r.ready("first")
	out := r.Kubectl("create", "-f", manifest("second", "{serviceTemplate: {name: web}}"))
	if want := `Warning: spec.serviceTemplate.name: the App "first" names the Service "web" too`; !strings.Contains(out, want) {
		t.Errorf("want %q: %s", want, out)
	}
	r.stalled("second", `App "first" controls it`)
	if out, err := r.TryKubectl("scale", "app", "first", "--replicas=2"); err != nil {
		t.Errorf("scaling: %v: %s", err, out)
	}
	r.ready("first")
}
