//go:build cluster

package shell

import (
	"context"
	"os"
	"testing"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/cluster"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, "shell", func(ctx context.Context) (func(context.Context) error, error) {
		return nil, cluster.ApplyCRDs(ctx, "shell-test", controller.KindTApp)
	}))
}
