//go:build cluster

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const app = `apiVersion: appcontroller.k8s.io/v1
kind: App
metadata: {name: shop}
spec:
  deploymentTemplate: {name: %[1]s, image: "nginx:1.25", replicas: 2}
  serviceTemplate: {name: %[1]s}
`

// TestApp: the kind App is turned on by an upgrade, and does its work with the rights
// that the chart then gives.
func TestApp(t *testing.T) {
	ns := namespace(t)
	install(t)
	rolledOut(t)
	helm(t, append([]string{"upgrade", releaseName, chartDir}, set([]string{"controllers.app.enabled=true"})...)...)
	rolledOut(t)
	answers(t, ns)
	appAnswers(t, ns)

	// Somebody else's objects are in the way, and go.
	kubectl(t, "--namespace", ns, "create", "service", "clusterip", "shop", "--tcp=80")
	kubectl(t, "--namespace", ns, "create", "deployment", "shop", "--image=nginx:1.25")
	mustApply(t, ns, fmt.Sprintf(app, "shop"))
	kubectl(t, "--namespace", ns, "wait", "app", "shop", "--for=condition=Stalled", "--timeout="+patience.String())
	kubectl(t, "--namespace", ns, "delete", "service,deployment", "shop")
	kubectl(t, "--namespace", ns, "wait", "app", "shop", "--for=condition=Ready", "--timeout="+patience.String())
	if out := kubectl(t, "--namespace", ns, "get", "app", "shop", "--no-headers"); strings.Join(strings.Fields(out)[:4], " ") != "shop shop 2/2 shop" {
		t.Errorf("kubectl get app: %s", out)
	}

	// Other names, another number; children left behind and taken up again.
	mustApply(t, ns, strings.Replace(fmt.Sprintf(app, "front"), "replicas: 2", "replicas: 1", 1))
	eventually(t, "the Service has its new name", func(ctx context.Context) error { return services(ctx, ns, "front") })
	kubectl(t, "--namespace", ns, "delete", "app", "shop", "--cascade=orphan")
	mustApply(t, ns, fmt.Sprintf(app, "front"))
	kubectl(t, "--namespace", ns, "wait", "app", "shop", "--for=condition=Ready", "--timeout="+patience.String())
	kubectl(t, "--namespace", ns, "delete", "app", "shop", "--cascade=foreground", "--timeout="+patience.String())
	eventually(t, "both children are gone", func(ctx context.Context) error { return services(ctx, ns) })
}

// appAnswers: the webhook for Apps judges, and says what is wrong.
func appAnswers(t *testing.T, ns string) {
	t.Helper()
	const want = "spec.deploymentTemplate.image"
	eventually(t, "the webhook judges Apps", func(ctx context.Context) error {
		out, err := apply(ctx, ns, strings.Replace(fmt.Sprintf(app, "shop"), "nginx:1.25", "", 1), "--dry-run=server")
		if err == nil || !strings.Contains(out+err.Error(), want) {
			return fmt.Errorf("an App without an image: %w %s", err, out)
		}
		return nil
	})
}

func services(ctx context.Context, ns string, want ...string) error {
	list, err := suite.kube.CoreV1().Services(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	names := make([]string, 0, len(list.Items))
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		return fmt.Errorf("the Services are %v", names)
	}
	return nil
}
