//go:build cluster

package shell

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
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
	r.Eventually("the first leads", func() string { return when(r.holder() == "", "nobody does") })
	leader := r.holder()
	second := r.start(r.elected)
	r.create(app("a", gen.Replicas(30)))
	r.settled("a")
	w.Expect(10)
	r.edit("a", func(t *tappv1.TApp) { gen.Default(gen.Image("demo:v2"))(t); gen.MaxUnavailable("10")(t) })
	r.Eventually("the update is under way", func() string {
		for _, p := range r.pods() {
			if p.Spec.Containers[0].Image == "demo:v2" {
				return ""
			}
		}
		return "nothing is updated yet"
	})
	began := time.Now()
	first.Stop()
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if h := r.holder(); h == leader {
		t.Errorf("the lease is still held by %s", h)
	}
	r.settled("a")
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
	r.create(app("a", gen.Replicas(10)))
	r.settled("a")
	l.set(true)
	r.edit("a", func(t *tappv1.TApp) { gen.Replicas(20)(t); gen.Default(gen.Image("demo:v2"))(t) })
	r.create(app("b"))
	r.Eventually("it stops working", func() string { return when(c.Metric("tapp_leader", nil) != 0, "it still leads") })
	r.Eventually("the lease expires", func() string {
		lease, err := r.Kube.CoordinationV1().Leases(r.NS).Get(r.Context(), "lease", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return when(time.Since(lease.Spec.RenewTime.Time) < 10*time.Second, "not yet")
	})
	if len(r.pods()) != 10 {
		t.Errorf("%d pods while the API server is away", len(r.pods()))
	}
	l.set(false)
	back := time.Now()
	r.Eventually("the new TApp gets its pods", func() string { return when(r.pods()["b-0"] == nil, "it has none") })
	if took := time.Since(back); took > 15*time.Second {
		t.Errorf("it went on after %v", took)
	}
	r.settled("a")
	r.settled("b")
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
	r.create(app("a"))
	r.settled("a")
	theft := fmt.Sprintf(`{"spec":{"holderIdentity":"thief","leaseDurationSeconds":12,"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	if _, err := r.Kube.CoordinationV1().Leases(r.NS).Patch(r.Context(), "lease", types.MergePatchType, []byte(theft), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	stolen := time.Now()
	r.Eventually("it stops working", func() string { return when(c.Metric("tapp_leader", nil) != 0, "it still leads") })
	r.edit("a", func(t *tappv1.TApp) { gen.Replicas(5)(t) })
	r.Eventually("it works again", func() string { return when(len(r.pods()) < 5, "not yet") })
	if took := time.Since(stolen); took < 11*time.Second {
		t.Errorf("it worked %v after the lease was another's for 12 s", took)
	}
	r.settled("a")
}

func when(is bool, what string) string {
	if is {
		return what
	}
	return ""
}
