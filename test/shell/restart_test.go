//go:build cluster

package shell

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tkestack.io/tapp/controller"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
	"tkestack.io/tapp/test/witness"
)

// TestCrashBetweenAnyTwoWrites plays a small story: three instances are created,
// updated in place one by one, one is killed and started again, and they are
// scaled to two. It is played again for every write of the controller, which
// crashes right after that write and before it learns the answer; another one
// takes over. Whenever that is, the story ends the same.
func TestCrashBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	const never = 1 << 30
	writes := int(tell(t, never))
	if writes < 20 {
		t.Fatalf("the story has only %d writes", writes)
	}
	for k := 1; k <= writes; k++ {
		t.Run(fmt.Sprintf("after write %d of %d", k, writes), func(t *testing.T) {
			t.Parallel()
			tell(t, k)
		})
	}
}

// tell plays the story with a crash after write k, and returns how many writes
// the first controller tried.
func tell(t *testing.T, k int) int64 {
	r := newRig(t)
	w := r.watchPods()
	c := newCrash(k)
	first := r.start(wrapped(c.wrap), func(c *controller.Config) { c.Grace = 0 })
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-c.crashed:
			first.Cancel()
			<-first.Ended()
			r.start()
		case <-done:
		}
	}()
	story(r, w)
	close(done)
	<-over
	return c.writes.Load()
}

func story(r *rig, w *witness.Witness) {
	r.Create(app("a"))
	r.WaitReady("a")

	w.Expect(1)
	r.Change("a", func(t *tappv1.TApp) { gen.Default(gen.Image("demo:v2"))(t) })
	r.WaitReady("a")
	w.Expect(-1)
	for name, p := range r.Pods() {
		if p.Spec.Containers[0].Image != "demo:v2" {
			r.Errorf("pod %s runs %s", name, p.Spec.Containers[0].Image)
		}
		if n := w.Lives(name); n != 1 {
			r.Errorf("pod %s was recreated: it had %d lives", name, n)
		}
	}

	w.Expect(0, "a-1")
	r.Change("a", func(t *tappv1.TApp) { gen.Killed(1)(t) })
	r.Eventually("a-1 is killed", func(context.Context) error {
		if t := r.WaitReady("a"); t.Status.Statuses["1"] != tappv1.InstanceKilled || r.Pods()["a-1"] != nil {
			return errors.New(fmt.Sprint(t.Status.Statuses))
		}
		return nil
	})
	r.Change("a", func(t *tappv1.TApp) { t.Spec.Statuses = nil })
	r.WaitReady("a")

	w.Expect(0, "a-2")
	r.Change("a", func(t *tappv1.TApp) { gen.Replicas(2)(t) })
	r.WaitReady("a")
	r.Eventually("two pods are left, and only a-1 was made anew", func(context.Context) error { // the witness is a watch of its own
		got := fmt.Sprint(len(r.Pods()), w.Lives("a-0"), w.Lives("a-1"), w.Lives("a-2"))
		return cluster.When(got != "2 1 2 1", got)
	})
}
