//go:build cluster

package nodes

import (
	"os"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, "nodes", startController)) }
