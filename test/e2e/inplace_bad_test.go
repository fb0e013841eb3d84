//go:build cluster

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// A bad image takes what the budget allows, no more, and a good one after it gets
// through although nothing is available that the budget could spend (fault 1).
func TestBadImageThenGoodOne(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"demo:crash", "demo:unready", "demo:missing"} {
		t.Run(bad[len("demo:"):], func(t *testing.T) {
			t.Parallel()
			// A container that crashes may be ready for a moment before: that is what
			// minReadySeconds is for. A busy kubelet tells of the crash ten seconds later.
			ns, _ := run(t, gen.TApp("app", gen.Default(gen.Probe()), func(t *tappv1.TApp) { t.Spec.MinReadySeconds = 20 }))
			before := pods(t, ns)
			rollout := watchRollout(t, ns)
			change(t, ns, "app", gen.Default(gen.Image(bad)))
			podWhere(t, ns, "app-0", "tries the bad image", func(p *corev1.Pod) string {
				switch s := container(p, "main"); {
				case image(p, "main") != bad:
					return "has another image"
				case bad == "demo:unready" && s.State.Running != nil && restarts(p, "main") == 1 && sameImages(p),
					s.State.Waiting != nil, s.LastTerminationState.Terminated != nil && s.RestartCount > 1:
					return ""
				}
				return "has not tried yet"
			})
			tappWhere(t, ns, "app", "is updating one instance", func(tapp *tappv1.TApp) string {
				return unless(tapp.Status.Statuses["0"] != running && tapp.Status.AvailableReplicas == 2, "not yet")
			})
			change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
			settled(t, ns, "app")
			after := pods(t, ns)
			sameUIDs(t, before, after)
			for _, p := range after {
				if !sameImages(p) || image(p, "main") != "demo:v2" {
					t.Errorf("it should run demo:v2: %s", cluster.PodLine(p))
				}
			}
			rollout.neverBelow(t, 2)
		})
	}
}

// All instances are down: nothing is available, and no budget may hold the fix up,
// be it forced or rolling (fault 1).
func TestAllDownThenFixed(t *testing.T) {
	t.Parallel()
	for name, forced := range map[string]bool{"rolling": false, "forced": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			opts := []gen.Option{gen.MaxUnavailable("1"), gen.ForceMaxUnavailable("1"), gen.Default(gen.Probe(), gen.Image("demo:unready"))}
			if forced {
				opts = append(opts, gen.Pool("other"), func(t *tappv1.TApp) { t.Spec.UpdateStrategy.Template = "other" })
			}
			create(t, ns, gen.TApp("app", opts...))
			for i := range 3 {
				podWhere(t, ns, fmt.Sprintf("app-%d", i), "runs", func(p *corev1.Pod) string { return unless(sameImages(p), "does not run") })
			}
			before := onlyPods(t, ns, "app-0", "app-1", "app-2")
			change(t, ns, "app", gen.Default(gen.Image("demo:v1")))
			settled(t, ns, "app")
			sameUIDs(t, before, pods(t, ns))
		})
	}
}

// A rollout that is taken back in its midst ends on the old version (S6); what it
// has not reached is not touched.
func TestRevertInMidUpdate(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(4), gen.Default(gen.Probe())))
	before := pods(t, ns)
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:slow"))) // ready after 5 s: the revert comes in the midst of it
	podWhere(t, ns, "app-0", "updating", func(p *corev1.Pod) string {
		return unless(image(p, "main") == "demo:slow", "not yet")
	})
	change(t, ns, "app", gen.Default(gen.Image("demo:v1")))
	tapp := settled(t, ns, "app")
	after := pods(t, ns)
	sameUIDs(t, before, after)
	for name, p := range after {
		if image(p, "main") != "demo:v1" || !sameImages(p) || p.Labels[tappv1.LabelTemplateHash] != before[name].Labels[tappv1.LabelTemplateHash] {
			t.Errorf("it should be back at demo:v1 and at the old hash: %s", cluster.PodLine(p))
		}
	}
	if restarts(after["app-3"], "main") != 0 {
		t.Errorf("the rollout had not reached it: %s", cluster.PodLine(after["app-3"]))
	}
	if tapp.Status.UpdatedReplicas != 4 {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	rollout.neverBelow(t, 3)
}
