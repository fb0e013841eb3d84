//go:build cluster

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/cluster"
)

// ofRelease selects the pods of the chart.
const ofRelease = "app.kubernetes.io/instance=" + releaseName

// helm must succeed.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := suite.Command(t.Context(), "", "helm", append(args, "--namespace", releaseSpace)...)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, suite.Describe(t.Context(), releaseSpace))
	}
	return out
}

// install installs the chart, and removes it when the test ends. It does not wait.
func install(t *testing.T, values ...string) string {
	t.Helper()
	out := helm(t, append([]string{"install", releaseName, chartDir}, set(values)...)...)
	t.Cleanup(func() {
		ctx := context.Background()
		if t.Failed() {
			t.Log(logs(ctx))
		}
		if err := uninstall(ctx); err != nil {
			t.Error(err)
		}
	})
	return out
}

// set makes flags of values, the image's among them. What begins with dashes is a
// flag already.
func set(values []string) []string {
	out := []string{"--set", "image.repository=" + suite.repository, "--set-string", "image.tag=" + suite.tag, "--set", "logging.verbosity=3"}
	for _, v := range values {
		if !strings.HasPrefix(v, "--") {
			out = append(out, "--set")
		}
		out = append(out, v)
	}
	return out
}

// uninstall removes the release, if there is one, and waits for its pods to be gone.
func uninstall(ctx context.Context) error {
	if out, err := suite.Command(ctx, "", "helm", "uninstall", releaseName, "--namespace", releaseSpace, "--ignore-not-found"); err != nil {
		return fmt.Errorf("helm uninstall: %w\n%s", err, out)
	}
	return cluster.Poll(ctx, patience, func(ctx context.Context) error {
		pods, err := releasePods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods of the release are left", len(pods))
		}
		return err
	})
}

func releasePods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := suite.Kube.CoreV1().Pods(releaseSpace).List(ctx, metav1.ListOptions{LabelSelector: ofRelease})
	if err != nil {
		return nil, fmt.Errorf("list the pods of the release: %w", err)
	}
	return list.Items, nil
}

// rolledOut waits until all replicas of the release are as the chart says.
func rolledOut(t *testing.T) {
	t.Helper()
	deploymentRolledOut(t, releaseName)
}

func deploymentRolledOut(t *testing.T, name string) {
	t.Helper()
	out, err := suite.Command(t.Context(), "", "kubectl", "--namespace", releaseSpace, "rollout", "status", "deployment/"+name, "--timeout="+patience.String())
	if err != nil {
		t.Fatalf("the release does not come up: %v\n%s\n%s\n%s", err, out, suite.Describe(t.Context(), releaseSpace), logs(t.Context()))
	}
}

// logs of the release's pods.
func logs(ctx context.Context) string {
	out, err := suite.Command(ctx, "", "kubectl", "--namespace", releaseSpace, "logs", "--selector", ofRelease, "--prefix", "--tail=20")
	if err != nil {
		return out + err.Error()
	}
	return out
}

// answers waits until admission is answered: a bad TApp is refused by the rules, and
// not for want of an answer.
func (r *rig) answers() {
	r.Helper()
	var out string
	r.judged("admission is answered", func() error {
		var err error
		if out, err = r.tryApply(badTApp, "--dry-run=server"); err == nil {
			return fmt.Errorf("a bad TApp passed: %s", out)
		}
		if !strings.Contains(out, "is invalid: ") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	if strings.TrimSpace(out) != badTAppSays {
		r.Fatalf("kubectl says\n%swant\n%s", out, badTAppSays)
	}
}

// badTApp breaks a rule that only the webhook has.
const (
	badTApp = `
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: bad}
spec:
  selector: {matchLabels: {app: bad}}
  replicas: 2
  template:
    metadata: {labels: {app: bad}}
    spec: {containers: [{name: web, image: "nginx:1.25"}]}
  templates: {"1": canary}
`
	badTAppSays = `The TApp "bad" is invalid: spec.templates[1]: Not found: "canary": there is no such template; add it to spec.templatePool, or name another one (there are: default)`
)

// goodTApp with this many instances on real nodes.
func goodTApp(name string, replicas int, image string) string {
	return fmt.Sprintf(`
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: "%[3]s"}]
  updateStrategy: {maxUnavailable: 100%%}
`, name, replicas, image)
}

// pods of a TApp, and how often their containers were started.
func (r *rig) pods(name string) map[string]string {
	r.Helper()
	return r.Starts("app=" + name)
}

// since tells how long something took, in tenths of seconds.
func since(began time.Time) string { return time.Since(began).Round(100 * time.Millisecond).String() }
