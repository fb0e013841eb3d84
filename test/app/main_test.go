//go:build cluster

package app

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tkestack.io/tapp/controller"
)

// TestMain has a first controller apply the CustomResourceDefinition, and the chart
// give the rights.
func TestMain(m *testing.M) {
	for _, prepare := range []func() error{applyCRDs, giveRights} {
		if err := prepare(); err != nil {
			fmt.Fprintln(os.Stderr, "app tests:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func applyCRDs() error {
	config, err := connect()
	if err != nil {
		return err
	}
	c := controller.Defaults()
	c.REST, c.MetricsAddress, c.Election.Enabled, c.Namespace, c.Controllers = config, "", false, "none", []string{controller.KindApp}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return controller.Run(ctx, c)
}

// giveRights applies the roles that the chart has with Apps turned on.
func giveRights() error {
	config, err := kubeconfig()
	if err != nil {
		return err
	}
	bin := filepath.Join(filepath.Dir(config), "bin")
	run := func(input []byte, name string, args ...string) ([]byte, error) {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		var complaints bytes.Buffer
		cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &complaints
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", name, err, complaints.String())
		}
		return out, nil
	}
	roles, err := run(nil, "helm", "template", "tapp", "../../chart", "--namespace", releaseSpace, "--set", "controllers.app.enabled=true", "--show-only", "templates/rbac.yaml")
	if err != nil {
		return err
	}
	space := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, releaseSpace)
	for _, manifest := range [][]byte{[]byte(space), roles} {
		if _, err := run(manifest, "kubectl", "--kubeconfig", config, "apply", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}
