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
	r := newRig(t)
	install(t)
	rolledOut(t)
	helm(t, append([]string{"upgrade", releaseName, chartDir}, set([]string{"controllers.app.enabled=true"})...)...)
	rolledOut(t)
	r.answers()
	appAnswers(r)

	// Somebody else's objects are in the way, and go.
	r.Kubectl("create", "service", "clusterip", "shop", "--tcp=80")
	r.Kubectl("create", "deployment", "shop", "--image=nginx:1.25")
	r.apply(fmt.Sprintf(app, "shop"))
	r.Kubectl("wait", "app", "shop", "--for=condition=Stalled", "--timeout="+patience.String())
	r.Kubectl("delete", "service,deployment", "shop")
	r.Kubectl("wait", "app", "shop", "--for=condition=Ready", "--timeout="+patience.String())
	if out := r.Kubectl("get", "app", "shop", "--no-headers"); strings.Join(strings.Fields(out)[:4], " ") != "shop shop 2/2 shop" {
		t.Errorf("kubectl get app: %s", out)
	}

	// Other names, another number; children left behind and taken up again.
	r.apply(strings.Replace(fmt.Sprintf(app, "front"), "replicas: 2", "replicas: 1", 1))
	r.Eventually("the Service has its new name", func(ctx context.Context) error { return r.services(ctx, "front") })
	r.Kubectl("delete", "app", "shop", "--cascade=orphan")
	r.apply(fmt.Sprintf(app, "front"))
	r.Kubectl("wait", "app", "shop", "--for=condition=Ready", "--timeout="+patience.String())
	r.Kubectl("delete", "app", "shop", "--cascade=foreground", "--timeout="+patience.String())
	r.Eventually("both children are gone", func(ctx context.Context) error { return r.services(ctx) })
}

// appAnswers: the webhook for Apps judges, and says what is wrong.
func appAnswers(r *rig) {
	r.Helper()
	const want = "spec.deploymentTemplate.image"
	r.judged("the webhook judges Apps", func() error {
		out, err := r.tryApply(strings.Replace(fmt.Sprintf(app, "shop"), "nginx:1.25", "", 1), "--dry-run=server")
		if err == nil || !strings.Contains(out+err.Error(), want) {
			return fmt.Errorf("an App without an image: %w %s", err, out)
		}
		return nil
	})
}

func (r *rig) services(ctx context.Context, want ...string) error {
	list, err := r.Kube.CoreV1().Services(r.NS).List(ctx, metav1.ListOptions{})
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
