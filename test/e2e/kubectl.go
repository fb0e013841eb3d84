//go:build cluster

package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kubectl runs the real kubectl, which must succeed, and returns what it prints.
func kubectl(t *testing.T, ns string, args ...string) string {
	t.Helper()
	out, err := tryKubectl(t, ns, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// tryKubectl returns all that kubectl prints, also when it fails.
func tryKubectl(t *testing.T, ns string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), suite.kubectl, append([]string{"--kubeconfig", suite.kubeconfig, "--namespace", ns}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// apply applies a file of testdata, with the strict validation that is kubectl's
// default.
func apply(t *testing.T, ns, file string) string {
	t.Helper()
	return kubectl(t, ns, "apply", "--validate=strict", "--filename", filepath.Join("testdata", file))
}
