//go:build cluster

package install

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/cluster"
)

// TestUpgrade: no admission request fails while all pods of the release are replaced,
// and TApps do not notice.
func TestUpgrade(t *testing.T) {
	r := newRig(t)
	install(t)
	rolledOut(t)
	r.answers()
	r.apply(goodTApp("web", 3, "nginx:1.25"))
	r.WaitReady("web")
	before, old := r.pods("web"), names(t)

	load := startLoad(r.Rig)
	helm(t, append([]string{"upgrade", releaseName, chartDir}, set([]string{"controller.workers=7"})...)...)
	rolledOut(t)
	cluster.Eventually(t, "the old pods are gone", func(ctx context.Context) error {
		for name := range names(t) {
			if old[name] {
				return fmt.Errorf("%s is there", name)
			}
		}
		return ctx.Err()
	})
	load.end(t, 100)
	if after := r.pods("web"); !maps.Equal(before, after) {
		t.Errorf("the pods of a TApp were %v, and are %v", before, after)
	}
	// The new ones work.
	r.apply(goodTApp("web", 4, "nginx:1.25"))
	r.WaitReady("web")
}

// names of the release's pods.
func names(t *testing.T) map[string]bool {
	t.Helper()
	list, err := releasePods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, p := range list {
		out[p.Name] = true
	}
	return out
}

// TestUninstall: without the release TApps and their pods stay, and can be changed;
// the next one takes them up, and restarts nothing.
func TestUninstall(t *testing.T) {
	r := newRig(t)
	install(t)
	rolledOut(t)
	r.answers()
	r.apply(goodTApp("web", 3, "nginx:1.25"))
	tapp := r.WaitReady("web")
	before := r.pods("web")

	if err := uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "get", "crd", "tapps.apps.tkestack.io")
	if _, err := suite.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), releaseName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the webhook configuration is left: %v", err)
	}
	out, err := suite.Command(t.Context(), "", "tapp", "check", "--timeout=2s", "--lease="+releaseSpace+"/none")
	if want := `ok   the API server serves tapps
ok   a TApp is admitted
FAIL a TApp that cannot be is refused: a TApp that names a missing template passes in namespace default: no webhook judges it
FAIL a controller is leading: reading the Lease of the controllers: leases.coordination.k8s.io "none" not found
ok   no schema lost fields that objects use
`; err == nil || !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "Error: 2 of 5 checks failed\n") {
		t.Errorf("tapp check says without a release: %v\n%s", err, out)
	}
	r.Kubectl("annotate", "tapp", "web", "note=uninstalled")
	left, err := r.TApps.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || left.UID != tapp.UID {
		t.Fatalf("the TApp is not what it was: %v", err)
	}
	if now := r.pods("web"); !maps.Equal(before, now) {
		t.Errorf("without a release the pods are %v, and were %v", now, before)
	}

	install(t)
	rolledOut(t)
	r.answers()
	r.apply(goodTApp("web", 4, "nginx:1.25")) // a sign that the new release works on it
	r.WaitReady("web")
	after := r.pods("web")
	delete(after, "web-3")
	if !maps.Equal(before, after) {
		t.Errorf("with a new release the pods are %v, and were %v", after, before)
	}
}

// TestUsers: the cluster's roles for users take in TApps.
func TestUsers(t *testing.T) {
	r := newRig(t)
	install(t)
	for _, c := range []struct{ role, verb, resource, want string }{
		{"view", "list", "tapps.apps.tkestack.io", "yes"},
		{"view", "get", "tapps.apps.tkestack.io/status", "yes"},
		{"view", "create", "tapps.apps.tkestack.io", "no"},
		{"edit", "create", "tapps.apps.tkestack.io", "yes"},
		{"edit", "patch", "tapps.apps.tkestack.io/scale", "yes"},
		{"edit", "patch", "tapps.apps.tkestack.io/status", "no"},
		{"admin", "delete", "tapps.apps.tkestack.io", "yes"},
		{"admin", "watch", "tapps.apps.tkestack.io", "yes"},
	} {
		user := "user-" + c.role
		if out, err := r.TryKubectl("get", "rolebinding", user); err != nil && strings.Contains(out, "NotFound") {
			r.Kubectl("create", "rolebinding", user, "--clusterrole="+c.role, "--user="+user)
		}
		r.Eventually(fmt.Sprint(c), func(context.Context) error { // the aggregation takes a moment
			resource, sub, _ := strings.Cut(c.resource, "/")
			out, _ := r.TryKubectl("auth", "can-i", c.verb, resource, "--subresource="+sub, "--as="+user) // says no by its exit code
			if got := strings.TrimSpace(out); got != c.want {
				return fmt.Errorf("got %q", got)
			}
			return nil
		})
	}
}
