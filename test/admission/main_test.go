//go:build cluster

package admission

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// TestMain puts the webhooks in front of the cluster.
func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "admission tests:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := connect(); err != nil {
		return 0, err
	}
	if err := applyCRDs(ctx); err != nil {
		return 0, err
	}
	ended, err := serve(ctx)
	if err != nil {
		return 0, err
	}
	code := m.Run()
	unregister(ctx)
	cancel()
	return code, ended()
}
