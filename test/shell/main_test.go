//go:build cluster

package shell

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"tkestack.io/tapp/controller"
)

// TestMain has a first controller apply the CustomResourceDefinitions.
func TestMain(m *testing.M) {
	if err := applyCRDs(); err != nil {
		fmt.Fprintln(os.Stderr, "shell tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func applyCRDs() error {
	config, err := connect()
	if err != nil {
		return err
	}
	c := controller.Defaults()
	c.REST, c.MetricsAddress, c.Election.Enabled, c.Namespace = config, "", false, "none"
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return controller.Run(ctx, c)
}
