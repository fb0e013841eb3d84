//go:build cluster

package shell

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// TestOutages takes parts of the cluster's control plane away, so that it is not
// parallel: Go runs the tests that are after it. The namespaces are made before,
// because who furnishes them may take a minute to notice that the API server is
// back.
func TestOutages(t *testing.T) {
	tests := []struct {
		name string
		run  func(*rig)
	}{
		{"etcd stalls", etcdStalls},
		{"the API server restarts", apiServerRestarts},
		{"the controller starts meanwhile, and applies CRDs", func(r *rig) { startsMeanwhile(r, true) }},
		{"the controller starts meanwhile, and CRDs are installed", func(r *rig) { startsMeanwhile(r, false) }},
		{"the controller stops meanwhile", stopsMeanwhile},
	}
	rigs := make([]*rig, len(tests))
	for i := range tests {
		rigs[i] = newRig(t)
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := *rigs[i]
			r.T = t
			test.run(&r)
		})
	}
}

// electedByDefault has the run hold an election in the rig's namespace, with the
// timings that users have.
func (r *rig) electedByDefault(c *controller.Config) {
	c.Election = controller.Defaults().Election
	c.Election.Namespace, c.Election.Name = r.NS, "lease"
}

// stop a component; what this returns starts it again, as the test's end does.
func (r *rig) stop(component string) (start func()) {
	r.Helper()
	stopped := true
	start = func() {
		r.Helper()
		if stopped {
			r.Devcluster("start", component)
			stopped = false
		}
	}
	r.Cleanup(start)
	r.Devcluster("stop", component)
	return start
}

// underWay begins an update of the TApp a, and returns when some instances are
// updated and others are not.
func (r *rig) underWay() {
	r.Helper()
	r.Change("a", func(t *tappv1.TApp) { gen.Default(gen.Image("demo:v2"))(t) })
	r.Eventually("the update is under way", func(context.Context) error {
		updated := 0
		for _, p := range r.Pods() {
			if p.Spec.Containers[0].Image == "demo:v2" {
				updated++
			}
		}
		return cluster.When(updated < 3, fmt.Sprintf("%d are updated", updated))
	})
}

// updatedInPlace checks how the update ended.
func (r *rig) updatedInPlace(lives func(string) int, replicas int) {
	r.Helper()
	r.WaitReady("a")
	pods := r.Pods()
	for i := range replicas {
		name := fmt.Sprint("a-", i)
		if p := pods[name]; p == nil || p.Spec.Containers[0].Image != "demo:v2" || lives(name) != 1 {
			r.Errorf("pod %s is %v after %d lives", name, p, lives(name))
		}
	}
}

// goesOn checks that the controller has not ended.
func (r *rig) goesOn(c *cluster.Controller) {
	r.Helper()
	select {
	case <-c.Ended():
		r.Fatalf("the controller gave up: %v", c.Err())
	default:
	}
}

// apiServerRestarts: the API server is away for so long that the leader gives up.
// Nothing is lost, and nothing needs a hand.
func apiServerRestarts(r *rig) {
	w := r.watchPods()
	c := r.start(r.electedByDefault)
	r.Create(app("a", gen.Replicas(60), gen.MaxUnavailable("2")))
	r.WaitReady("a")
	w.Expect(2)
	r.underWay()
	start := r.stop("kube-apiserver")
	r.Eventually("it stops working", func(context.Context) error { return cluster.When(c.Metric("tapp_leader", nil) != 0, "it still leads") })
	r.goesOn(c)
	start()
	r.Eventually("it leads again", func(context.Context) error { return cluster.When(c.Metric("tapp_leader", nil) != 1, "not yet") })
	r.updatedInPlace(w.Lives, 60)
	r.goesOn(c)
}

// startsMeanwhile: it waits, and works when the API server is there.
func startsMeanwhile(r *rig, createCRD bool) {
	start := r.stop("kube-apiserver")
	c := r.start(r.electedByDefault, func(c *controller.Config) { c.CreateCRD = createCRD })
	r.Eventually("it tries, again and again", func(context.Context) error {
		r.goesOn(c)
		n := c.Metric("tapp_api_requests_total", map[string]string{"code": ""})
		return cluster.When(n < 5, fmt.Sprintf("%v requests", n))
	})
	start()
	r.Eventually("it leads", func(context.Context) error {
		r.goesOn(c)
		return cluster.When(c.Metric("tapp_leader", nil) != 1, "not yet")
	})
	r.Create(app("a"))
	// Not that they run: the simulated nodes may take a minute to come back.
	r.Eventually("it makes pods", func(context.Context) error { return cluster.When(len(r.Pods()) != 3, "they are not all there") })
}

// stopsMeanwhile: it does not hang.
func stopsMeanwhile(r *rig) {
	c := r.start(r.electedByDefault)
	r.Eventually("it leads", func(context.Context) error { return cluster.When(c.Metric("tapp_leader", nil) != 1, "not yet") })
	r.stop("kube-apiserver")
	c.Stop()
}

// etcdStalls: it stands still for 10 seconds in the middle of an update.
func etcdStalls(r *rig) {
	const lasts = 10 * time.Second
	w := r.watchPods()
	c := r.start(r.electedByDefault)
	r.Create(app("a", gen.Replicas(60), gen.MaxUnavailable("2")))
	r.WaitReady("a")
	w.Expect(2)
	r.underWay()
	thaw, began, stalled := r.Freeze("etcd"), time.Now(), false
	ctx, cancel := context.WithTimeout(r.Context(), lasts)
	defer cancel()
	for ctx.Err() == nil {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "stall-"}}
		_, err := r.Kube.CoreV1().ConfigMaps(r.NS).Create(ctx, m, metav1.CreateOptions{})
		if err == nil && stalled {
			r.Fatal("etcd takes writes")
		}
		stalled = stalled || err != nil || time.Since(began) > time.Second // a signal takes a moment
	}
	thaw()
	r.goesOn(c)
	r.updatedInPlace(w.Lives, 60)
	r.goesOn(c)
}
