//go:build cluster

package release

import (
	"context"
	"os"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, "release", func(context.Context) (func(context.Context) error, error) { return nil, nil }))
}
