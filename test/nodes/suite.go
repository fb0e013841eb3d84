//go:build cluster

package nodes

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/witness"
)

// lostAfter is how long a node has to be not ready to count as lost.
const lostAfter = 10 * time.Second

// startController runs `tapp controller` until stop is called, which says how it
// ended.
func startController(ctx context.Context) (stop func(context.Context) error, err error) {
	c, err := cluster.Connect("nodes-test")
	if err != nil {
		return nil, err
	}
	process, err := c.Launch("controller", "--create-crd", "--node-lost-after", lostAfter.String(), "--v", "3")
	if err != nil {
		return nil, err
	}
	stop = func(context.Context) error { return process.Stop() }
	err = cluster.Poll(ctx, cluster.Patience, func(ctx context.Context) error {
		_, err := c.TApps("").List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tapp has not made its CRD: %w; see %s", err, process.Log), process.Stop())
	}
	return stop, nil
}

// rig is a namespace in which a test works, with those who watch it.
type rig struct {
	*cluster.Rig
	witness *witness.Witness
	told    *told
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Rig: cluster.New(t, "nodes")}
	t.Cleanup(func() {
		if t.Failed() {
			out, err := r.TryKubectl("get", "nodes")
			t.Logf("nodes: %v\n%s", err, out)
		}
	})
	r.witness = witness.Watch(t, r.Kube.CoreV1().Pods(r.NS))
	r.told = listen(r.Rig)
	return r
}

// create TApps, and wait until they are ready.
func (r *rig) create(tapps ...*tappv1.TApp) {
	r.Helper()
	for _, t := range tapps {
		r.Create(t)
	}
	for _, t := range tapps {
		r.WaitReady(t.Name)
	}
}

// podIs waits for a pod of that name of which check holds.
func (r *rig) podIs(name, what string, check func(*corev1.Pod) bool) *corev1.Pod {
	r.Helper()
	return r.WaitPod(name, what, func(p *corev1.Pod) string {
		if !check(p) {
			return "not so yet"
		}
		return ""
	})
}
