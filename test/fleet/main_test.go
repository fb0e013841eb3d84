//go:build cluster

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

// everything is the fleet of all tests.
var everything *fleet

// TestMain installs what the chart has, except for its pods, in all clusters: the
// programs run as processes, with the tokens of the chart's accounts.
func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, "fleet", func(ctx context.Context) (func(context.Context) error, error) {
		dir := os.Getenv("TAPP_FLEET")
		if dir == "" {
			return nil, errors.New("TAPP_FLEET names no clusters: run these tests by `make fleet-test`")
		}
		var err error
		if everything, err = connect(dir); err != nil {
			return nil, err
		}
		if err := everything.begin(ctx); err != nil {
			return nil, errors.Join(err, everything.end(ctx))
		}
		return everything.end, nil
	}))
}

func connect(dir string) (*fleet, error) {
	f := &fleet{}
	for _, name := range []string{"hub", "member1", "member2", "member3"} {
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
