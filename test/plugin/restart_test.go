//go:build cluster

package plugin

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/gen"
	"tkestack.io/tapp/test/witness"
)

// kubectl runs kubectl with its plugin, which must succeed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestRestartKeepsToTheBudget: all instances get other pods, and never are more of
// them away than the budget of their template says.
func TestRestartKeepsToTheBudget(t *testing.T) {
	t.Setenv("PATH", suite.path)
	ns, err := newNamespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteNamespace(t, ns) })
	app := gen.TApp("web", gen.Replicas(6), gen.Default(gen.Simulated()), gen.Pool("canary"), gen.Use("canary", 4, 5),
		gen.MaxUnavailable("2"), gen.ForceMaxUnavailable("2"))
	if _, err := suite.tapps.TApps(ns).Create(t.Context(), app, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "tapp", "-n", ns, "status", "web", "--watch", "--timeout", "10m")
	w := witness.Watch(t, suite.Kube.CoreV1().Pods(ns))
	w.Expect(2)
	kubectl(t, "tapp", "restart", "web", "--all", "--wait", "--timeout=1m", "--namespace="+ns)
	for _, pod := range []string{"web-0", "web-1", "web-2", "web-3", "web-4", "web-5"} {
		if n := w.Lives(pod); n != 2 {
			t.Errorf("pod %s had %d lives", pod, n)
		}
	}
	if out := kubectl(t, "tapp", "plan", "web", "-n", ns); out != "tapp.apps.tkestack.io/web: nothing would change\n" {
		t.Errorf("something is left to do: %s", out)
	}
}
