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
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of the time tests wait for pods, so that there may be more of them than
	// cores.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "10")
	}
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := connect(); err != nil {
		return 1, err
	}
	var err error
	if suite.feed, err = startFeed(ctx); err != nil {
		return 1, err
	}
	if suite.oracle, err = startOracle(suite.feed, suite.auditLog); err != nil {
		return 1, err
	}
	if suite.controller, err = startController(ctx); err != nil {
		return 1, err
	}
	code := m.Run()
	failures := []error{namespacesGone(ctx), suite.controller.stop(ctx)}
	violations, err := suite.oracle.conclude()
	failures = append(failures, err)
	for _, v := range violations {
		failures = append(failures, errors.New(v))
	}
	err = errors.Join(failures...)
	if code != 0 || err != nil {
		fmt.Fprintln(os.Stderr, suite.controller.tail(10_000))
	}
	return code, err
}

// namespacesGone waits for the namespaces of the tests: what a TApp leaves behind
// must not keep one from going. A namespace that somebody is to look at stays.
func namespacesGone(ctx context.Context) error {
	err := poll(ctx, 2*time.Minute, func(ctx context.Context) error {
		list, err := suite.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: ownNamespace})
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
