//go:build cluster

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// ofRelease selects the pods of the chart.
const ofRelease = "app.kubernetes.io/instance=" + releaseName

// helm must succeed.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), "", "helm", append(args, "--namespace", releaseSpace)...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s\n%s", strings.Join(args, " "), err, out, describe(releaseSpace))
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
	if out, err := command(ctx, "", "helm", "uninstall", releaseName, "--namespace", releaseSpace, "--ignore-not-found"); err != nil {
		return fmt.Errorf("helm uninstall: %w\n%s", err, out)
	}
	return poll(ctx, func(ctx context.Context) error {
		pods, err := releasePods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods of the release are left", len(pods))
		}
		return err
	})
}

func releasePods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := suite.kube.CoreV1().Pods(releaseSpace).List(ctx, metav1.ListOptions{LabelSelector: ofRelease})
	if err != nil {
		return nil, fmt.Errorf("list the pods of the release: %w", err)
	}
	return list.Items, nil
}

// rolledOut waits until all replicas of the release are as the chart says.
func rolledOut(t *testing.T) {
	t.Helper()
	out, err := command(t.Context(), "", "kubectl", "--namespace", releaseSpace, "rollout", "status", "deployment/tapp", "--timeout="+patience.String())
	if err != nil {
		t.Fatalf("the release does not come up: %v\n%s\n%s\n%s", err, out, describe(releaseSpace), logs(t.Context()))
	}
}

// logs of the release's pods.
func logs(ctx context.Context) string {
	out, err := command(ctx, "", "kubectl", "--namespace", releaseSpace, "logs", "--selector", ofRelease, "--prefix", "--tail=20")
	if err != nil {
		return out + err.Error()
	}
	return out
}

// answers waits until admission is answered: a bad TApp is refused by the rules, and
// not for want of an answer.
func answers(t *testing.T, namespace string) {
	t.Helper()
	var out string
	eventually(t, "admission is answered", func(ctx context.Context) error {
		var err error
		if out, err = apply(ctx, namespace, badTApp, "--dry-run=server"); err == nil {
			return fmt.Errorf("a bad TApp passed: %s", out)
		}
		if !strings.Contains(out, "is invalid: ") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	if strings.TrimSpace(out) != badTAppSays {
		t.Fatalf("kubectl says\n%swant\n%s", out, badTAppSays)
	}
}

// badTApp breaks a rule that only the webhook has.
const (
	badTApp = `
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: bad}
spec:
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

// settled waits until the TApp is Ready at its present generation.
func settled(t *testing.T, namespace, name string) *tappv1.TApp {
	t.Helper()
	var tapp *tappv1.TApp
	eventually(t, "TApp "+name+" is Ready", func(ctx context.Context) error {
		var err error
		if tapp, err = suite.tapps.TApps(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if tapp.Status.ObservedGeneration != tapp.Generation || !meta.IsStatusConditionTrue(tapp.Status.Conditions, tappv1.ConditionReady) {
			return fmt.Errorf("generation %d, status %+v", tapp.Generation, tapp.Status)
		}
		return nil
	})
	return tapp
}

// pods of a TApp: name to UID and restarts.
func pods(t *testing.T, namespace, name string) map[string]string {
	t.Helper()
	list, err := suite.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range list.Items {
		restarts := int32(0)
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		out[p.Name] = fmt.Sprintf("uid %s, %d restarts", p.UID, restarts)
	}
	return out
}

// since tells how long something took, in tenths of seconds.
func since(began time.Time) string { return time.Since(began).Round(100 * time.Millisecond).String() }
