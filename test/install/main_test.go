//go:build cluster

package install

import (
	"os"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, "install", begin)) }
