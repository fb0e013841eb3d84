//go:build cluster

package shell

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// elected has the run hold an election in the rig's namespace.
func (r *rig) elected(c *controller.Config) {
	c.Election = controller.Election{Enabled: true, LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second,
		RetryPeriod: 500 * time.Millisecond, Namespace: r.NS, Name: "lease"}
}

func (r *rig) holder() string {
	l, err := r.Kube.CoordinationV1().Leases(r.NS).Get(r.Context(), "lease", metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// TestStopReleasesTheLease: and the standby, whose caches are warm, goes on.
func TestStopReleasesTheLease(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.watchPods()
	first := r.start(r.elected)
	r.Eventually("the first leads", func(context.Context) error { return cluster.When(r.holder() == "", "nobody does") })
	leader := r.holder()
	second := r.start(r.elected)
	r.Create(app("a", gen.Replicas(30)))
	r.WaitReady("a")
	w.Expect(10)
	r.Change("a", func(t *tappv1.TApp) { gen.Default(gen.Image("demo:v2"))(t); gen.MaxUnavailable("10")(t) })
	r.Eventually("the update is under way", func(context.Context) error {
		for _, p := range r.Pods() {
			if p.Spec.Containers[0].Image == "demo:v2" {
				return nil
			}
		}
		return errors.New("nothing is updated yet")
	})
	first.Stop()
	if h := r.holder(); h == leader {
		t.Errorf("the lease is still held by %s", h)
	}
	r.WaitReady("a")
	for i := range 30 {
		if name := fmt.Sprint("a-", i); w.Lives(name) != 1 {
			t.Errorf("pod %s had %d lives", name, w.Lives(name))
		}
	}
	second.Stop()
	if h := r.holder(); h != "" {
		t.Errorf("the lease is held by %q after all have stopped", h)
	}
}

// TestAPIServerAway: for longer than the lease lasts. Nothing is lost, and
// nothing needs a restart.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.watchPods()
	l := newLink()
	c := r.start(r.elected, wrapped(l.wrap))
	r.Create(app("a", gen.Replicas(10)))
	r.WaitReady("a")
	l.set(true)
	r.Change("a", func(t *tappv1.TApp) { gen.Replicas(20)(t); gen.Default(gen.Image("demo:v2"))(t) })
	r.Create(app("b"))
	r.Eventually("it stops working", func(context.Context) error { return cluster.When(c.Metric("tapp_leader", nil) != 0, "it still leads") })
	r.Eventually("the lease expires", func(ctx context.Context) error {
		lease, err := r.Kube.CoordinationV1().Leases(r.NS).Get(ctx, "lease", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return cluster.When(time.Since(lease.Spec.RenewTime.Time) < 10*time.Second, "not yet")
	})
	if len(r.Pods()) != 10 {
		t.Errorf("%d pods while the API server is away", len(r.Pods()))
	}
	l.set(false)
	r.Eventually("the new TApp gets its pods", func(context.Context) error { return cluster.When(r.Pods()["b-0"] == nil, "it has none") })
	r.WaitReady("a")
	r.WaitReady("b")
	for i := range 20 {
		if name := fmt.Sprint("a-", i); w.Lives(name) != 1 {
			t.Errorf("pod %s had %d lives", name, w.Lives(name))
		}
	}
	select {
	case <-c.Ended():
		t.Error("the controller gave up")
	default:
	}
}

// TestLeaseLostToAnother: somebody takes the lease away. The leader stops working
// at once, and does not before it has the lease back.
func TestLeaseLostToAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.start(r.elected)
	r.Create(app("a"))
	r.WaitReady("a")
	theft := fmt.Sprintf(`{"spec":{"holderIdentity":"thief","leaseDurationSeconds":12,"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	if _, err := r.Kube.CoordinationV1().Leases(r.NS).Patch(r.Context(), "lease", types.MergePatchType, []byte(theft), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	stolen := time.Now()
	r.Eventually("it stops working", func(context.Context) error { return cluster.When(c.Metric("tapp_leader", nil) != 0, "it still leads") })
	r.Change("a", func(t *tappv1.TApp) { gen.Replicas(5)(t) })
	r.Eventually("it works again", func(context.Context) error { return cluster.When(len(r.Pods()) < 5, "not yet") })
	if took := time.Since(stolen); took < 11*time.Second {
		t.Errorf("it worked %v after the lease was another's for 12 s", took)
	}
	r.WaitReady("a")
}
