//go:build cluster

package install

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"text/template"
	"time"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestPages: pages of the documentation, as their readers go through them. The tutorial is all
// of `kubectl tapp` on real nodes, with the webhooks. A StatefulSet with claims becomes a TApp
// and a StatefulSet again, and no pod is made anew.
func TestPages(t *testing.T) {
	r := newRig(t)
	install(t)
	rolledOut(t)
	r.answers()
	for page, section := range map[string]string{"tutorial.md": "", "migration.md": "From a StatefulSet"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			goThrough(t, page, section, newRig(t).NS)
		})
	}
}

// TestFromTheOriginal: what tkestack/tapp has left is taken over by an installation of the
// chart, and no pod is made anew or restarts. Its objects are as it wrote them; the program
// itself cannot be had from the module proxy, and does not start on the API server of today.
func TestFromTheOriginal(t *testing.T) {
	r := newRig(t)
	kubectl(t, "delete", "crd", "tapps.apps.tkestack.io", "--ignore-not-found")
	kubectl(t, "create", "--filename", original("crd.yaml"))
	kubectl(t, "wait", "crd", "tapps.apps.tkestack.io", "--for=condition=Established", "--timeout="+patience.String())
	r.Kubectl("create", "--filename", original("tapp.yaml"))
	uid := r.Kubectl("get", "tapp", "example-tapp", "--output=jsonpath={.metadata.uid}")
	for id, c := range map[int]struct{ version, hash string }{0: {"1.7.9", "6823430265043312943"}, 1: {"1.8.1", "1172949410389427325"}, 3: {"1.7.9", "6823430265043312943"}} {
		instanceOfTheOriginal(r, map[string]any{"ID": id, "TApp": uid, "Version": c.version, "Hash": c.hash})
	}
	r.Kubectl("wait", "pods", "--all", "--for=condition=Ready", "--timeout="+patience.String())
	t.Cleanup(func() {
		if err := uninstall(context.Background()); err != nil { // the test's context has ended
			t.Error(err)
		}
	})
	goThrough(t, "migration.md", "From tkestack/tapp", r.NS)
}

func original(name string) string { return filepath.Join("testdata", "original", name) }

// instanceOfTheOriginal makes a pod with its gate open, and its claim.
func instanceOfTheOriginal(r *rig, values map[string]any) {
	r.Helper()
	parsed, err := template.ParseFiles(original("instance.yaml"))
	if err != nil {
		r.Fatal(err)
	}
	var manifest bytes.Buffer
	if err := parsed.Execute(&manifest, values); err != nil {
		r.Fatal(err)
	}
	r.apply(manifest.String())
	r.Kubectl("patch", "pod", fmt.Sprintf("example-tapp-%d", values["ID"]), "--subresource=status", "--patch", fmt.Sprintf(
		`{"status":{"conditions":[{"type":%q,"status":"True","lastTransitionTime":%q}]}}`, tappv1.GateInPlaceUpdate, time.Now().UTC().Format(time.RFC3339)))
}
