//go:build cluster

package api

import (
	"context"
	"os"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, "api", func(ctx context.Context) (func(context.Context) error, error) {
		return nil, cluster.ApplyCRDs(ctx, "api-test", kinds...)
	}))
}
