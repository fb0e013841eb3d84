//go:build cluster

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/cluster"
)

// TestMain has a first controller apply the CustomResourceDefinition, and the chart
// give the rights.
func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, "app", func(ctx context.Context) (func(context.Context) error, error) {
		return nil, errors.Join(cluster.ApplyCRDs(ctx, "app-test", controller.KindApp), giveRights(ctx))
	}))
}

// giveRights applies the roles that the chart has with Apps turned on.
func giveRights(ctx context.Context) error {
	c, err := cluster.Connect("app-test")
	if err != nil {
		return err
	}
	roles, err := chart(ctx, c, "rbac.yaml")
	if err != nil {
		return err
	}
	space := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, releaseSpace)
	for _, manifest := range []string{space, roles} {
		if out, err := c.Command(ctx, manifest, "kubectl", "apply", "-f", "-"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
}

// chart renders a template of the chart with Apps turned on.
func chart(ctx context.Context, c *cluster.Cluster, template string) (string, error) {
	out, err := c.Command(ctx, "", "helm", "template", "tapp", "../../chart", "--namespace", releaseSpace, "--set", "controllers.app.enabled=true",
		"--show-only", "templates/"+template)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return out, nil
}
