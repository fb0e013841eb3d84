package helm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/helm"
)

// TestRenderProcesses: what is wrong with the child process is no fault of the chart.
func TestRenderProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		script, want string
		chart        bool
	}{
		"ends":               {"cat >/dev/null; exit 3", "rendering chart (not read yet) in a child process: exit status 3: it said nothing", false},
		"complains":          {"cat >/dev/null; echo 'rendering chart web-1.0.0' >&2; echo no >&2; exit 1", "rendering chart web-1.0.0 in a child process: exit status 1: no", false},
		"says nothing":       {"cat >/dev/null; echo '{}'", "the render process wrote no answer", false},
		"talks nonsense":     {"cat >/dev/null; echo hello", "reading what the render process wrote: invalid character 'h' looking for beginning of value", false},
		"talks too much":     {"cat >/dev/null; echo 'rendering chart web-1.0.0' >&2; yes | head -c 70000000", "chart web-1.0.0: it renders to more than 67108864 bytes", true},
		"does not end":       {"echo 'rendering chart web-1.0.0' >&2; echo 'rendering file web/templates/a.yaml' >&2; exec sleep 1000", "chart web-1.0.0: web/templates/a.yaml: rendering did not end within 2s", true},
		"runs out of memory": {"echo 'rendering chart web-1.0.0' >&2; echo 'fatal error: runtime: out of memory' >&2; exit 2", "chart web-1.0.0: rendering needs more than 512 MiB of memory", true},
		"has no secrets":     {`cat >/dev/null; env | cut -d= -f1 | grep -vE '^(PWD|SHLVL|_)$' | sort | tr '\n' ' ' >&2; exit 1`, "rendering chart (not read yet) in a child process: exit status 1: GOMEMLIMIT GOTRACEBACK TAPP_RENDER_MEMORY", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/secret")
			limits := helm.Limits{Time: time.Minute}
			if name == "does not end" {
				limits.Time = 2 * time.Second
			}
			_, err := helm.NewRenderer(limits, "/bin/sh", "-c", c.script).Render(t.Context(), helm.Request{Chart: []byte("x")})
			var fault *helm.Error
			if err == nil || err.Error() != c.want || errors.As(err, &fault) != c.chart {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestRenderIsCancelled(t *testing.T) {
	gone := errors.New("the lease was lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	renderer := helm.NewRenderer(helm.Limits{Time: time.Hour, AtOnce: 1}, "/bin/sh", "-c", "exec sleep 1000")
	ended := make(chan error)
	// One runs, and the other waits for its turn.
	for range 2 {
		go func() {
			_, err := renderer.Render(ctx, helm.Request{Chart: []byte("x")})
			ended <- err
		}()
	}
	cancel(gone)
	for range 2 {
		if err := <-ended; !errors.Is(err, gone) {
			t.Error(err)
		}
	}
}

func TestRenderBoundsTheArchive(t *testing.T) {
	_, err := helm.NewRenderer(helm.Limits{}).Render(t.Context(), helm.Request{Chart: make([]byte, helm.MaxArchive+1)})
	if err == nil || err.Error() != "chart: the archive has 1048577 bytes; at most 1048576 are possible" {
		t.Error(err)
	}
}

func TestUninstallOrder(t *testing.T) {
	objects, err := helm.Objects(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: a}
---
apiVersion: example.com/v1
kind: Zoo
metadata: {name: z}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d1}
---
apiVersion: example.com/v1
kind: Ant
metadata: {name: a}
---
apiVersion: v1
kind: Service
metadata: {name: s}
`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range helm.UninstallOrder(objects) {
		got = append(got, o.GetKind()+"/"+o.GetName())
	}
	if want := "Service/s Deployment/d2 Deployment/d1 ServiceAccount/a Ant/a Zoo/z"; strings.Join(got, " ") != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}
