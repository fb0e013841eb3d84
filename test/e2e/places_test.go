//go:build cluster

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// Under a quota the lowest ids get the free places, whether there were too few from the start, one was added, or
// instances were lost that had one.
func TestLowestIdsGetTheFreePlaces(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	setQuota(t, ns, "4")
	create(t, ns, gen.TApp("app", gen.Replicas(10), gen.Default(gen.Simulated())))
	have := func(n int) {
		t.Helper()
		tappWhere(t, ns, "app", fmt.Sprintf("%d instances are Ready", n), func(tapp *tappv1.TApp) string {
			return unless(int(tapp.Status.ReadyReplicas) >= n, "not yet")
		})
		got := slices.Sorted(maps.Keys(pods(t, ns)))
		for id, name := range got {
			if name != fmt.Sprintf("app-%d", id) {
				t.Errorf("the places are of %v: not the %d lowest ids", got, len(got))
				break
			}
		}
		// A quota lets in one too many in the moment in which pods go that it counts.
		if len(got) > n {
			deletePods(t, ns, got[n:]...)
			for _, name := range got[n:] {
				cluster.Eventually(t, name+" is gone", func(ctx context.Context) error {
					list, err := listPods(ctx, ns)
					return errors.Join(err, cluster.When(list[name] != nil, "it is there"))
				})
			}
		}
	}
	have(4)
	setQuota(t, ns, "6")
	have(6)
	for _, lost := range [][]string{{"app-1"}, {"app-0", "app-4"}, {"app-5"}, {"app-3", "app-2", "app-5"}} {
		before := pods(t, ns)
		deletePods(t, ns, lost...)
		for _, name := range lost {
			follows(t, ns, before[name])
		}
		have(6)
	}
	cluster.Never(t, time.Second, "no higher id has a place", func(ctx context.Context) error {
		list, err := listPods(ctx, ns)
		if err == nil && (list["app-6"] != nil || list["app-9"] != nil) {
			err = fmt.Errorf("it has: %d pods", len(list))
		}
		return err
	})
	setQuota(t, ns, "10")
	settled(t, ns, "app")
}
