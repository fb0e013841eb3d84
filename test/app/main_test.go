//go:build cluster

package app

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/cluster"
)

// TestMain has a first controller apply the CustomResourceDefinition, and the chart
// give the rights.
func TestMain(m *testing.M) {
	if err := errors.Join(cluster.ApplyCRDs("app-test", controller.KindApp), giveRights()); err != nil {
		fmt.Fprintln(os.Stderr, "app tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// giveRights applies the roles that the chart has with Apps turned on.
func giveRights() error {
	c, err := cluster.Connect("app-test")
	if err != nil {
		return err
	}
	roles, err := chart(c, "rbac.yaml")
	if err != nil {
		return err
	}
	space := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, releaseSpace)
	for _, manifest := range [][]byte{[]byte(space), roles} {
		if _, err := output(c, manifest, "kubectl", "--kubeconfig", c.Kubeconfig, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

// chart renders a template of the chart with Apps turned on.
func chart(c *cluster.Cluster, template string) ([]byte, error) {
	return output(c, nil, "helm", "template", "tapp", "../../chart", "--namespace", releaseSpace, "--set", "controllers.app.enabled=true",
		"--show-only", "templates/"+template)
}

// output of a program of the cluster's.
func output(c *cluster.Cluster, input []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(c.Program(name), args...)
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, complaints.String())
	}
	return out, nil
}
