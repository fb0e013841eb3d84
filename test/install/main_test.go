//go:build cluster

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (int, error) {
	ctx := context.Background()
	if err := connect(ctx); err != nil {
		return 1, err
	}
	// What an earlier run on this cluster left would not be made anew, and the rights to
	// do so would seem unused.
	if out, err := command(ctx, "", "kubectl", "--namespace", releaseSpace, "delete", "secrets,leases", "--all"); err != nil {
		return 1, fmt.Errorf("clear the namespace of the release: %w\n%s", err, out)
	}
	code := m.Run()
	return code, errors.Join(uninstall(ctx))
}
