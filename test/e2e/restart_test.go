//go:build cluster

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// stopController stops the suite's controller; the test starts it again, or the
// end of the test does, with the usual flags.
func stopController(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if suite.controller.Ended() != nil {
			started, err := startController(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			suite.controller = started
		}
	})
	if err := suite.controller.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func restartController(t *testing.T, flags ...string) {
	t.Helper()
	started, err := startController(t.Context(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	suite.controller = started
}

// updated waits until so many pods of the namespace have the image in their spec.
func updated(t *testing.T, ns, want string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d pods have %s", n, want), func(ctx context.Context) error {
		list, err := listPods(ctx, ns)
		if err != nil {
			return err
		}
		have := 0
		for _, p := range list {
			if image(p, "main") == want {
				have++
			}
		}
		if have < n {
			return fmt.Errorf("%d have", have)
		}
		return nil
	})
}

// A controller that ends in the midst of a rollout, in order or not, is followed
// by one that goes on from what the cluster shows: no pod is updated twice, and no
// budget is spent twice.
func TestControllerRestartsDuringRollout(t *testing.T) {
	const n, budget = 200, 20
	stopController(t)
	restartController(t, impatient...)
	ns, _ := run(t, gen.TApp("app", gen.Replicas(n), gen.Default(gen.Simulated()), gen.MaxUnavailable(fmt.Sprint(budget))))
	before := pods(t, ns)
	rollout := watchRollout(t, ns)
	for round, end := range []func(*testing.T){
		stopController,
		func(t *testing.T) {
			t.Helper()
			if err := suite.controller.Kill(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		version := fmt.Sprintf("demo:v%d", round+2)
		change(t, ns, "app", gen.Default(gen.Image(version)))
		updated(t, ns, version, 3*budget/2)
		end(t)
		restartController(t, impatient...)
		settled(t, ns, "app")
		after := pods(t, ns)
		sameUIDs(t, before, after)
		for _, p := range after {
			if image(p, "main") != version || restarts(p, "main") != int32(round+1) {
				t.Errorf("it should have been updated %d times: %s", round+1, cluster.PodLine(p))
			}
		}
	}
	rollout.neverBelow(t, n-budget)
	stopController(t)
}

// impatient leaders lose their lease in an outage of a few seconds, and those who
// follow a crashed one need not wait for long.
var impatient = []string{
	"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=500ms",
}

// The API server goes away in the midst of a rollout for longer than a leader may
// be silent, and comes back: nothing is lost, and the controller is the same
// process.
func TestAPIServerOutage(t *testing.T) {
	if _, err := exec.LookPath(suite.Program("devcluster")); err != nil {
		t.Fatalf("the cluster has to be one that devcluster started (make e2e), so that its API server can be stopped: %v", err)
	}
	stopController(t)
	restartController(t, impatient...)
	ns, _ := run(t, gen.TApp("app", gen.Replicas(6), gen.Default(gen.Probe())))
	before := pods(t, ns)
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	updated(t, ns, "demo:v2", 2)
	in(t, ns).Devcluster("stop", "kube-apiserver")
	eventually(t, "the leader has lost its lease", func(context.Context) error {
		if log := suite.controller.Tail(1 << 20); !strings.Contains(log, "Lost the lease") {
			return errors.New("it has not said so")
		}
		return nil
	})
	in(t, ns).Devcluster("start", "kube-apiserver")
	settled(t, ns, "app")
	if suite.controller.Ended() != nil {
		t.Fatal("the controller ended")
	}
	after := pods(t, ns)
	sameUIDs(t, before, after)
	for _, p := range after {
		if image(p, "main") != "demo:v2" || restarts(p, "main") != 1 {
			t.Errorf("it should have been updated once: %s", cluster.PodLine(p))
		}
	}
	rollout.neverBelow(t, 5)
	// What comes after works as before.
	change(t, ns, "app", gen.Killed(0), gen.Replicas(7))
	settled(t, ns, "app")
	podWhere(t, ns, "app-6", "is ready", func(p *corev1.Pod) string { return unless(isReady(p), "is not") })
	if s := get(t, ns, "app").Status.Statuses["0"]; s != tappv1.InstanceKilled {
		t.Errorf("instance 0 is %s", s)
	}
	stopController(t)
}
