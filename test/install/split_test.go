//go:build cluster

package install

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// TestSplit: webhooks and controllers as two Deployments with two accounts, each of which
// has the rights that it needs. The webhooks' can neither change nor delete a pod.
func TestSplit(t *testing.T) {
	r := newRig(t)
	install(t, "tls.mode=selfManaged", "split.enabled=true")
	for _, part := range []string{"controller", "webhook"} {
		deploymentRolledOut(t, releaseName+"-"+part)
	}
	// A controller of the release before may have ended after its rights did.
	began, err := suite.audit.Read()
	if err != nil {
		t.Fatal(err)
	}
	r.answers()
	r.apply(goodTApp("web", 2, "nginx:1.25"))
	r.WaitReady("web")
	r.apply(goodTApp("web", 2, "nginx:1.27"))
	r.WaitReady("web")
	requests, err := suite.audit.Read()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for n, q := range slices.Concat(began, requests) {
		if q.User != account && q.User != account+"-webhook" || q.Resource == "" {
			continue
		}
		if q.Code == http.StatusForbidden && (n >= len(began) || q.User != account) {
			t.Errorf("%s may not %s %s", q.User, q.Verb, q.Resource)
		}
		if q.User != account {
			seen[fmt.Sprint(q.Verb, " ", q.Resource)] = true
		}
	}
	if !seen["create pods"] || !seen["list pods"] || seen["patch pods"] || seen["delete pods"] {
		t.Errorf("the webhooks' account did %v", seen)
	}
	as := "--as=" + account + "-webhook"
	for _, verb := range []string{"patch", "delete"} {
		if out, err := suite.Command(t.Context(), "", "kubectl", "auth", "can-i", verb, "pods", as, "--namespace", r.NS); err == nil {
			t.Errorf("the webhooks' account may %s pods: %s", verb, out)
		}
	}
	// Rights let it create pods, which is how it tries them; the policy does not.
	stranger := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger", "namespace": "` + r.NS + `"}, "spec": {"containers": [{"name": "x", "image": "nginx:1.25"}]}}`
	for _, dryRun := range []bool{true, false} {
		args := []string{"create", "--filename", "-", as}
		if dryRun {
			args = append(args, "--dry-run=server")
		}
		out, err := suite.Command(t.Context(), stranger, "kubectl", slices.Clip(args)...)
		if (err == nil) != dryRun {
			t.Errorf("dry run %t: %v\n%s", dryRun, err, out)
		}
	}
}
