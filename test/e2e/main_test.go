//go:build cluster

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/cluster"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of the time tests wait for pods, so that there may be more of them than
	// cores.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "10")
	}
	code := cluster.Main(m, "e2e", begin)
	if code != 0 && suite.controller != nil {
		fmt.Fprintln(os.Stderr, suite.controller.Tail(10_000))
	}
	os.Exit(code)
}

// begin starts those who watch, and the controller.
func begin(ctx context.Context) (end func(context.Context) error, err error) {
	if suite.Cluster, err = cluster.Connect("e2e-test"); err != nil {
		return nil, err
	}
	if suite.feed, err = startFeed(ctx); err != nil {
		return nil, err
	}
	log, err := suite.FollowAudit()
	if err != nil {
		return nil, err
	}
	suite.oracle = startOracle(suite.feed, log)
	suite.controller, err = startController(ctx)
	return conclude, err
}

// conclude waits for the end of what the tests have begun, and asks the oracle.
func conclude(ctx context.Context) error {
	failures := []error{namespacesGone(ctx), suite.controller.stop(ctx)}
	violations, err := suite.oracle.conclude()
	failures = append(failures, err)
	for _, v := range violations {
		failures = append(failures, errors.New(v))
	}
	return errors.Join(failures...)
}

// namespacesGone waits for the namespaces of the tests: what a TApp leaves behind
// must not keep one from going. A namespace that somebody is to look at stays.
func namespacesGone(ctx context.Context) error {
	err := cluster.Poll(ctx, 2*time.Minute, func(ctx context.Context) error {
		list, err := suite.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: ownNamespace})
		if err != nil {
			return err
		}
		var left []string
		for _, ns := range list.Items {
			if ns.DeletionTimestamp != nil {
				left = append(left, fmt.Sprintf("%s: %v", ns.Name, ns.Status.Conditions))
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("namespaces are left: %v", left)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}
