//go:build cluster

package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tkestack.io/tapp/webhook"
)

// TestAdmission: the webhook behind the API server, with its own registration, by
// what kubectl says.
func TestAdmission(t *testing.T) {
	r := newRig(t, "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := webhook.NewAdmission("app-test")
	a.REST, a.Listener, a.ShutdownDelay = r.config, listener, 0
	a.Register, a.Apps = true, true
	a.TLS.DNSNames, a.TLS.SecretName, a.TLS.SecretNamespace, a.TLS.Configuration = []string{"localhost"}, "tapp-ca", r.ns, r.ns
	if err := a.Prepare(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.kubectl("delete", "--ignore-not-found", "mutatingwebhookconfigurations,validatingwebhookconfigurations", r.ns)
	})

	manifest := func(name, spec string) string {
		path := filepath.Join(t.TempDir(), name+".yaml")
		content := fmt.Sprintf("apiVersion: appcontroller.k8s.io/v1\nkind: App\nmetadata: {name: %s}\nspec: %s\n", name, spec)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := manifest("bad", "{deploymentTemplate: {name: Web, ports: [{containerPort: 80}, {containerPort: 80}]}}")
	r.eventually("a bad App is refused", func() string {
		out, err := r.tryKubectl("create", "--dry-run=server", "-f", bad)
		for _, want := range []string{
			`The App "bad" is invalid:`,
			`* spec.deploymentTemplate.name: Invalid value: "Web": it is no DNS label`,
			`* spec.deploymentTemplate.image: Required value: the Deployment has a name and no image`,
			`* spec.deploymentTemplate.ports[1]: Duplicate value: "80/TCP"`,
		} {
			if err == nil || !strings.Contains(out, want) {
				return fmt.Sprintf("%v, want %q: %s", err, want, out)
			}
		}
		return ""
	})
	r.kubectl("create", "-f", manifest("first", "{deploymentTemplate: {name: web, image: nginx:1.25, replicas: 1}, serviceTemplate: {name: web}}"))
	r.ready("first")
	out := r.kubectl("create", "-f", manifest("second", "{serviceTemplate: {name: web}}"))
	if want := `Warning: spec.serviceTemplate.name: the App "first" names the Service "web" too`; !strings.Contains(out, want) {
		t.Errorf("want %q: %s", want, out)
	}
	r.stalled("second", `App "first" controls it`)
	if out, err := r.tryKubectl("scale", "app", "first", "--replicas=2"); err != nil {
		t.Errorf("scaling: %v: %s", err, out)
	}
	r.ready("first")
}
