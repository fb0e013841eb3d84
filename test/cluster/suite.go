package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"tkestack.io/tapp/controller"
)

// Main runs the tests of a suite after its beginning and before its end, which start
// returns; it may be nil. What Main returns is the exit code for TestMain.
func Main(m *testing.M, suite string, start func(context.Context) (end func(context.Context) error, err error)) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code := 1
	end, err := start(ctx)
	if err == nil {
		code = m.Run()
		if end != nil {
			err = end(ctx)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s tests: %v\n", suite, err)
		code = max(code, 1)
	}
	return code
}

// ApplyCRDs has a controller apply the CustomResourceDefinitions of these kinds, and
// ends it when they are served.
func ApplyCRDs(ctx context.Context, agent string, kinds ...string) error {
	cluster, err := Connect(agent)
	if err != nil {
		return err
	}
	c := controller.Defaults()
	c.REST, c.MetricsAddress, c.Election.Enabled, c.Namespace, c.Controllers = cluster.Config, "", false, "none", kinds
	replica, err := controller.New(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	for replica.Ready() != nil {
		select {
		case err := <-ended:
			return errors.Join(errors.New("the controller ended before it was ready"), err)
		case <-time.After(shortestInterval):
		}
	}
	cancel()
	return <-ended
}
