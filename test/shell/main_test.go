//go:build cluster

package shell

import (
	"fmt"
	"os"
	"testing"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/cluster"
)

// TestMain has a first controller apply the CustomResourceDefinitions.
func TestMain(m *testing.M) {
	if err := cluster.ApplyCRDs("shell-test", controller.KindTApp); err != nil {
		fmt.Fprintln(os.Stderr, "shell tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
