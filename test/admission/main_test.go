//go:build cluster

package admission

import (
	"os"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, "admission", begin)) }
