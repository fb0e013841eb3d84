//go:build cluster

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

// everything is the fleet of most tests, and second one of tests that take the clusters of
// theirs away for long: both go on at a time.
var everything, second *fleet

// TestMain installs what the chart has, except for its pods, in all clusters: the
// programs run as processes, with the tokens of the chart's accounts.
func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, "fleet", func(ctx context.Context) (func(context.Context) error, error) {
		dir := os.Getenv("TAPP_FLEET")
		if dir == "" {
			return nil, errors.New("TAPP_FLEET names no clusters: run these tests by `make fleet-test`")
		}
		var err error
		if everything, err = connect(dir, "hub", "member1", "member2", "member3"); err != nil {
			return nil, err
		}
		if second, err = connect(filepath.Join(dir, "second"), "hub", "member1", "member2"); err != nil {
			return nil, err
		}
		second.guarded = true
		fleets := []*fleet{everything, second}
		end := func(ctx context.Context) error { return each(fleets, func(f *fleet) error { return f.end(ctx) }) }
		if err := each(fleets, func(f *fleet) error { return f.begin(ctx) }); err != nil {
			return nil, errors.Join(err, end(ctx))
		}
		return end, nil
	}))
}

// each does something with all of them at a time.
func each[T any](all []T, do func(T) error) error {
	var doing sync.WaitGroup
	errs := make([]error, len(all))
	for i, one := range all {
		doing.Go(func() { errs[i] = do(one) })
	}
	doing.Wait()
	return errors.Join(errs...)
}

// connect to the hub and the members that have these directories.
func connect(dir string, names ...string) (*fleet, error) {
	f := &fleet{}
	for _, name := range names {
		c, err := cluster.ConnectTo(filepath.Join(dir, name, "kubeconfig"), "fleet-test")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		e, err := newEye(c.Config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s := &site{Cluster: c, name: name, eye: e}
		if name == "hub" {
			f.hub = s
		} else {
			f.members = append(f.members, s)
		}
	}
	return f, nil
}
