//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

func TestRollingBudgets(t *testing.T) {
	t.Parallel()
	for budget, n := range map[string]int{"1": 1, "2": 2, "30%": 2} { // 30% of 6, rounded up
		t.Run(strings.ReplaceAll(budget, "%", "-percent"), func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", gen.Replicas(6), gen.MaxUnavailable(budget), gen.Default(gen.Probe())))
			before := pods(t, ns)
			rollout := watchRollout(t, ns)
			change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
			tapp := settled(t, ns, "app")
			sameUIDs(t, before, pods(t, ns))
			rollout.neverBelow(t, 6-n)
			rollout.reached(t, 6-n)
			rollout.ascending(t, n, 0, 1, 2, 3, 4, 5)
			if s := tapp.Status; s.UpdatedReplicas != 6 || s.AvailableReplicas != 6 || s.ReadyReplicas != 6 || s.Replicas != 6 {
				t.Errorf("status: %s", cluster.StatusOf(tapp))
			}
		})
	}
}

// Ready for minReadySeconds is what counts as available, so that a rollout waits
// for it at each step.
func TestRollingWaitsForMinReadySeconds(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2), func(t *tappv1.TApp) { t.Spec.MinReadySeconds = 3 }))
	begin := time.Now()
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	settled(t, ns, "app")
	// Two instances, one by one, at least 3 s each less the part of a second that a
	// condition's time leaves out.
	if took := time.Since(begin); took < 4*time.Second {
		t.Errorf("the rollout took %s, and should have waited for 3 s after each of two instances", took)
	}
}

// Forced and rolling updates spend one count of available instances: while forced
// ones are down, no rolling one may begin.
func TestForcedUpdatesNarrowRollingOnes(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(6), gen.Default(gen.Probe()), gen.Pool("forced"), gen.Use("forced", 0, 1), gen.MaxUnavailable("2")))
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Pool("forced", gen.Image("demo:unready")), gen.Default(gen.Image("demo:v2")))
	for i := range 2 {
		podIs(t, ns, i, "demo:unready")
	}
	cluster.Never(t, 2*time.Second, "rolling instances wait", func(ctx context.Context) error {
		list, err := listPods(ctx, ns)
		for name, p := range list {
			if image(p, "main") == "demo:v2" {
				return fmt.Errorf("%s did not wait", name)
			}
		}
		return err
	})
	change(t, ns, "app", func(tapp *tappv1.TApp) { gen.Pool("forced", gen.Image("demo:v3"))(tapp) })
	settled(t, ns, "app")
	for i := range 6 {
		podIs(t, ns, i, map[bool]string{true: "demo:v3", false: "demo:v2"}[i < 2])
	}
	rollout.neverBelow(t, 4)
}

// podIs waits until an instance runs an image; ready or not.
func podIs(t *testing.T, ns string, id int, want string) {
	t.Helper()
	name := fmt.Sprintf("app-%d", id)
	eventually(t, fmt.Sprintf("%s runs %s", name, want), func(ctx context.Context) error {
		list, err := listPods(ctx, ns)
		if err != nil {
			return err
		}
		p := list[name]
		if p == nil {
			return fmt.Errorf("it does not exist")
		}
		if image(p, "main") != want || !sameImages(p) {
			return fmt.Errorf("%s", cluster.PodLine(p))
		}
		return nil
	})
}

func TestForcedUpdatesAreNotRolled(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(4), gen.Default(gen.Probe()), gen.Pool("forced"), gen.Use("forced", 0, 1, 2)))
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Pool("forced", gen.Image("demo:v2")))
	settled(t, ns, "app")
	rollout.reached(t, 1) // all at once, whatever updateStrategy.maxUnavailable says
	rollout.ascending(t, 3, 0, 1, 2)
}

func TestPaused(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app"))
	before := pods(t, ns)
	change(t, ns, "app", pause(true), gen.Default(gen.Image("demo:v2")))
	tappWhere(t, ns, "app", "says that it is paused", func(tapp *tappv1.TApp) string {
		c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionProgressing)
		return unless(c != nil && c.Reason == "Paused", "it does not")
	})
	// Creates, kills and scaling go on, and what is created runs what its siblings serve with.
	change(t, ns, "app", gen.Replicas(4), gen.Killed(2))
	instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{
		"0": tappv1.InstanceRunning, "1": tappv1.InstanceRunning, "2": tappv1.InstanceKilled, "3": tappv1.InstanceRunning,
	})
	during := pods(t, ns)
	delete(before, "app-2")
	untouched(t, before, during)
	if image(during["app-3"], "main") != "demo:v1" {
		t.Errorf("a new instance is like those that serve: %s", cluster.PodLine(during["app-3"]))
	}
	change(t, ns, "app", pause(false))
	settled(t, ns, "app")
	after := pods(t, ns)
	sameUIDs(t, during, after)
	for _, p := range after {
		if image(p, "main") != "demo:v2" {
			t.Errorf("it should run demo:v2: %s", cluster.PodLine(p))
		}
	}
}

func TestRecreate(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app"))
	before := pods(t, ns)
	rollout := watchRollout(t, ns)
	log, kubelets := follow(t), follow(t)
	change(t, ns, "app", gen.Default(gen.Env("MODE", "new")))
	settled(t, ns, "app")
	after := onlyPods(t, ns, "app-0", "app-1", "app-2")
	hash := after["app-0"].Labels[tappv1.LabelTemplateHash]
	for name, p := range after {
		if p.UID == before[name].UID || len(p.Spec.Containers[0].Env) != 1 {
			t.Errorf("it should have been made anew: %s", cluster.PodLine(p))
		}
		if p.Labels[tappv1.LabelTemplateHash] != hash || hash == before[name].Labels[tappv1.LabelTemplateHash] ||
			p.Labels[tappv1.LabelUniqHash] == before[name].Labels[tappv1.LabelUniqHash] {
			t.Errorf("%s has not got its template's hashes: %v", name, p.Labels)
		}
	}
	rollout.neverBelow(t, 2)
	rollout.ascending(t, 1, 0, 1, 2)
	again := deletedAgain(t, kubelets, ns)
	for name, n := range podWrites(t, log, ns) {
		// Each pod that went besides took a create, and a gate unless it went before.
		if k := again[name]; n < 3+k || n > 3+2*k {
			t.Errorf("%d writes for %s, want 3: delete, create, gate; the simulated kubelet deleted %d pods of that name besides", n, name, k)
		}
	}
}

// deletedAgain counts the pods that a simulated kubelet deleted besides the one of each name that the controller did. It
// deletes by name, not by UID, and on a busy machine so late that the next pod has the name.
func deletedAgain(t *testing.T, log *audit.Log, ns string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, r := range in(t, ns).Requests(log, audit.Filter{Agent: "kwok/", Resource: "pods", Namespace: ns}) {
		if r.Verb == "delete" && r.Code == http.StatusOK {
			out[r.Name]++
		}
	}
	for name, n := range out {
		out[name] = n - 1
	}
	return out
}

func TestPolicyReCreate(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Policy(tappv1.ReCreate)))
	before := pods(t, ns)
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	settled(t, ns, "app")
	for name, p := range onlyPods(t, ns, "app-0", "app-1", "app-2") {
		if p.UID == before[name].UID || image(p, "main") != "demo:v2" || restarts(p, "main") != 0 {
			t.Errorf("it should have been made anew: %s", cluster.PodLine(p))
		}
	}
	rollout.neverBelow(t, 2)
}

func TestPolicyInPlaceOnly(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Policy(tappv1.InPlaceOnly), gen.Pool("other"), gen.Use("other", 1)))
	before := pods(t, ns)
	change(t, ns, "app", gen.Default(gen.Env("MODE", "new")))
	stalled(t, ns, "app", "spec.updateStrategy.inPlaceUpdate.policy", "0,2")
	untouched(t, before, pods(t, ns))
	// What can change in place still does.
	change(t, ns, "app", gen.Pool("other", gen.Image("demo:v2")), func(tapp *tappv1.TApp) {
		own := tapp.Spec.TemplatePool["other"]
		own.Spec.Containers[0].Env = nil
		tapp.Spec.TemplatePool["other"] = own
	})
	podIs(t, ns, 1, "demo:v2")
	sameUIDs(t, before, pods(t, ns))
	change(t, ns, "app", gen.Policy(tappv1.InPlaceIfPossible))
	tapp := settled(t, ns, "app")
	if meta.IsStatusConditionTrue(tapp.Status.Conditions, tappv1.ConditionStalled) {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
}
