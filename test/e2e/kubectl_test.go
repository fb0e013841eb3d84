//go:build cluster

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// eventuallyPrints waits until a command prints what is wanted.
func eventuallyPrints(t *testing.T, what string, command func() (string, error), want string) {
	t.Helper()
	eventually(t, what, func(context.Context) error {
		out, err := command()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if !strings.Contains(out, want) {
			return fmt.Errorf("%q lacks %q", out, want)
		}
		return nil
	})
}

func TestKubectl(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, gen.TApp("app", gen.Default(gen.Probe())))
	kubectl(t, ns, "wait", "--for=condition=Ready", "--timeout=5m", "tapp/app")

	lines := strings.Split(kubectl(t, ns, "get", "tapp"), "\n")
	if got := strings.Join(strings.Fields(lines[0]), " "); got != "NAME DESIRED READY UPDATED STATUS AGE" {
		t.Errorf("columns: %s", got)
	}
	if got := strings.Join(strings.Fields(lines[1])[:5], " "); got != "app 3 3 3 Running" {
		t.Errorf("row: %s", got)
	}
	wide := strings.Split(kubectl(t, ns, "get", "ta", "app", "-o", "wide"), "\n")
	if got := strings.Fields(wide[0]); !slices.Equal(got[len(got)-2:], []string{"IMAGE", "SELECTOR"}) {
		t.Errorf("columns of wide: %v", got)
	}
	if got := strings.Fields(wide[1]); !slices.Equal(got[len(got)-2:], []string{"demo:v1", "app=app"}) {
		t.Errorf("row of wide: %v", got)
	}
	if all := kubectl(t, ns, "get", "all"); !strings.Contains(all, "tapp.apps.tkestack.io/app") {
		t.Errorf("kubectl get all does not show it: %s", all)
	}
	if described := kubectl(t, ns, "describe", "tapp", "app"); !strings.Contains(described, "SuccessfulCreate") {
		t.Errorf("kubectl describe does not show how it was created: %s", described)
	}
	explained := kubectl(t, ns, "explain", "tapp.spec.updateStrategy")
	for _, want := range []string{"maxUnavailable", "inPlaceUpdate", "how many instances may be unavailable"} {
		if !strings.Contains(explained, want) {
			t.Errorf("kubectl explain lacks %q: %s", want, explained)
		}
	}
	if explained := kubectl(t, ns, "explain", "tapp.spec.template.spec.containers.image"); !strings.Contains(explained, "string") {
		t.Errorf("kubectl explain does not know the pod template: %s", explained)
	}
	// A rollout is over when the status says so about this very generation.
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	kubectl(t, ns, "wait", "--for=condition=Ready", "--timeout=5m", "tapp/app")
}

// A TApp as kubectl applies it, by client and by server: nothing that the
// controller writes gets in the user's way (fault 17).
func TestApplyTwice(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	for _, mode := range []string{"--server-side=false", "--server-side=true"} {
		name := "app" + map[bool]string{true: "s", false: "c"}[strings.HasSuffix(mode, "true")]
		file := t.TempDir() + "/app.yaml"
		write(t, file, gen.TApp(name, gen.Replicas(1)))
		kubectl(t, ns, "apply", mode, "-f", file)
		settled(t, ns, name)
		generation := get(t, ns, name).Generation
		kubectl(t, ns, "apply", mode, "-f", file)
		if g := get(t, ns, name).Generation; g != generation || g != 1 {
			t.Errorf("%s: generation %d, want 1: somebody else writes spec", mode, g)
		}
		if out, err := tryKubectl(t, ns, "diff", mode, "-f", file); err != nil {
			t.Errorf("%s: kubectl diff finds: %s", mode, out)
		}
		write(t, file, gen.TApp(name, gen.Replicas(1), gen.Default(gen.Image("demo:v2"))))
		kubectl(t, ns, "apply", mode, "-f", file)
		settled(t, ns, name)
		if p := pod(t, ns, name+"-0"); image(p, "main") != "demo:v2" {
			t.Errorf("%s", cluster.PodLine(p))
		}
	}
}

// The status of a generation never claims more than what was planned for it.
func TestStatusOfABigApp(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(50), gen.Default(gen.Simulated()), gen.MaxUnavailable("50%")))
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	tapp := settled(t, ns, "app")
	if s := tapp.Status; s.UpdatedReplicas != 50 || s.AvailableReplicas != 50 || s.AppStatus != tappv1.AppRunning {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	rollout.neverBelow(t, 25)
}

// write writes the TApp as a user would: without a status.
func write(t *testing.T, file string, tapp *tappv1.TApp) {
	t.Helper()
	data, err := json.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]string `json:"metadata"`
		Spec            tappv1.TAppSpec   `json:"spec"`
	}{
		metav1.TypeMeta{APIVersion: tappv1.SchemeGroupVersion.String(), Kind: tappv1.Kind},
		map[string]string{"name": tapp.Name}, tapp.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
