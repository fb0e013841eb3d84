//go:build cluster

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/hook"
)

// patient is how long anything may take here.
const patient = 2 * time.Minute

// begin puts the webhooks in front of the cluster, until end is called.
func begin(ctx context.Context) (end func(context.Context) error, err error) {
	c, err := cluster.Connect("admission-test")
	if err != nil {
		return nil, err
	}
	if err := cluster.ApplyCRDs(ctx, "admission-test", controller.Kinds()...); err != nil {
		return nil, err
	}
	hooks, err := hook.Start(ctx, c, "../../chart", "--set", "controllers.app.enabled=true,controllers.appset.enabled=true,controllers.advdeployment.enabled=true",
		"--set-json", `webhook.namespaceSelector={"matchExpressions": [{"key": "`+bypassed+`", "operator": "DoesNotExist"}]}`)
	if err != nil {
		return nil, err
	}
	return hooks.Stop, asked(ctx, c)
}

// bypassed is the label of namespaces in which the webhooks are not asked.
const bypassed = "admission-test/bypassed"

// asked waits until the API server asks the webhooks, and goes by the policies.
func asked(ctx context.Context, c *cluster.Cluster) error {
	nobody := `{"apiVersion": "workload.dmall.com/v1beta1", "kind": "Confirmation", "metadata": {"name": "x-y"}, "spec": {"appSet": "x", "rollout": "z", "stage": "s", "token": "y"}}`
	return cluster.Poll(ctx, patient, func(ctx context.Context) error {
		t := manifest("probe")
		t.Name = strings.Repeat("a", 80) // which is too long
		_, err := c.TApps(metav1.NamespaceDefault).Create(ctx, t, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "validate.tapp.tkestack.io") {
			return fmt.Errorf("the webhooks are not asked: %s", fmt.Sprint(err))
		}
		out, err := c.Command(ctx, nobody, "kubectl", "create", "--dry-run=server", "--filename", "-")
		return cluster.When(err == nil || !strings.Contains(out, "there is no AppSet x"), out)
	})
}

// rig is a namespace behind the webhooks.
type rig struct{ *cluster.Rig }

func newRig(t *testing.T, labels map[string]string) *rig {
	t.Helper()
	return &rig{cluster.New(t, "admission", cluster.Labels(labels))}
}

// eventually is Eventually with the patience of this suite.
func (r *rig) eventually(what string, holds func() bool) {
	r.Helper()
	cluster.Within(r.T, patient, what, func(context.Context) error { return cluster.When(!holds(), "it does not") })
}
