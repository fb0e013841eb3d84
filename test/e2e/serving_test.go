//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// endless is a minReadySeconds within which every test ends: what is Ready does not become available.
const endless = 3600

func minReady(seconds int32) gen.Option {
	return func(t *tappv1.TApp) { t.Spec.MinReadySeconds = seconds }
}

// cache is an app of so many instances, of which one may be out of service.
func cache(replicas, minReadySeconds int32, opts ...gen.Option) *tappv1.TApp {
	return gen.TApp("app", append([]gen.Option{gen.Replicas(replicas), minReady(minReadySeconds), gen.Default(gen.Probe())}, opts...)...)
}

// allReady waits until n instances are Ready, available or not.
func allReady(t *testing.T, ns string, n int32) {
	t.Helper()
	tappWhere(t, ns, "app", fmt.Sprintf("%d instances are Ready", n), func(tapp *tappv1.TApp) string {
		return unless(tapp.Status.ReadyReplicas == n && *tapp.Spec.Replicas == n, "not all")
	})
}

// oneIsUpdated waits until instance 0 alone has the new content, and all are Ready.
func oneIsUpdated(t *testing.T, ns string) {
	t.Helper()
	tappWhere(t, ns, "app", "the first instance has the new content, and serves", func(tapp *tappv1.TApp) string {
		return unless(tapp.Status.UpdatedReplicas >= 1 && tapp.Status.ReadyReplicas == *tapp.Spec.Replicas, "not yet")
	})
}

// othersWait checks that what serves waits while the content of one instance is not available.
func othersWait(t *testing.T, ns string) {
	t.Helper()
	cluster.Never(t, time.Second, "the others wait for the soak of the first", func(ctx context.Context) error {
		tapp, err := suite.TApps(ns).Get(ctx, "app", metav1.GetOptions{})
		if err == nil && tapp.Status.ObservedGeneration == tapp.Generation && tapp.Status.UpdatedReplicas > 1 {
			err = fmt.Errorf("%d are updated", tapp.Status.UpdatedReplicas)
		}
		return err
	})
}

// post sends a request to a pod's server, which answers /readyz as it was told last.
func post(t *testing.T, p *corev1.Pod, path string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://%s:%d%s", p.Status.PodIP, gen.DemoPort, path), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", request.URL, response.Status)
	}
}

// flap has a pod be not Ready for a moment.
func flap(t *testing.T, ns, name string) {
	t.Helper()
	post(t, pod(t, ns, name), "/unready")
	p := podWhere(t, ns, name, "is not Ready", func(p *corev1.Pod) string { return unless(!isReady(p), "is Ready") })
	post(t, p, "/ready")
	podWhere(t, ns, name, "is Ready again", func(p *corev1.Pod) string { return unless(isReady(p), "is not") })
}

// renewReady has all pods be Ready since now, as kubelets say it that were restarted.
func renewReady(t *testing.T, ns string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": %q}]}}`, time.Now().UTC().Format(time.RFC3339))
	for name := range pods(t, ns) {
		if _, err := suite.Kube.CoreV1().Pods(ns).Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatalf("renew the time of Ready of pod %s: %v", name, err)
		}
	}
}

// Instances that are Ready serve, available or not, and to interrupt them takes budget. The same
// was reported of others: kubernetes/kubernetes#112307, deckhouse/deckhouse#5039.
func TestServingInstancesSpendTheBudget(t *testing.T) {
	t.Parallel()
	image := gen.Default(gen.Image("demo:v2"))
	for name, c := range map[string]struct {
		app    *tappv1.TApp
		before func(t *testing.T, ns string) // what comes before the push; nil: all are Ready
		push   gen.Option
	}{
		"none-is-available":         {cache(4, endless), nil, image},
		"none-is-available-noDrain": {cache(4, endless, gen.NoDrain()), nil, image},
		"none-is-available-remade":  {cache(4, endless, gen.Default(stopsSoon)), nil, gen.Default(gen.Env("MODE", "new"))},
		"none-is-available-policy":  {cache(4, endless, gen.Policy(tappv1.ReCreate), gen.Default(stopsSoon)), nil, image},
		"kubelets-were-restarted": {cache(4, 6), func(t *testing.T, ns string) {
			t.Helper()
			settled(t, ns, "app")
			renewReady(t, ns)
		}, image},
		"scaled-up": {cache(2, 6), func(t *testing.T, ns string) {
			t.Helper()
			settled(t, ns, "app")
			change(t, ns, "app", gen.Replicas(4))
		}, image},
		"one-flapped": {cache(4, 6), func(t *testing.T, ns string) {
			t.Helper()
			settled(t, ns, "app")
			flap(t, ns, "app-2")
		}, image},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			create(t, ns, c.app.DeepCopy())
			routes := expose(t, ns, "app")
			if c.before != nil {
				c.before(t, ns)
			}
			allReady(t, ns, 4)
			routes.served(t, 4)
			rollout := watchRollout(t, ns)
			change(t, ns, "app", c.push)
			oneIsUpdated(t, ns)
			if c.app.Spec.MinReadySeconds == endless {
				othersWait(t, ns)
			}
			change(t, ns, "app", minReady(0))
			settled(t, ns, "app")
			rollout.neverBelow(t, 3)
			if drain := c.app.Spec.UpdateStrategy.InPlaceUpdate.Drain; drain == nil || *drain {
				rollout.reached(t, 3) // without a drain, a kubelet need not report a restart that is short
			}
			budget := 1
			if name == "one-flapped" {
				budget = 4 // the one that is not available goes first, if it is not yet
			}
			rollout.ascending(t, budget, 0, 1, 2, 3)
			routes.neverFewer(t, 3)
		})
	}
}

// stopsSoon is for pods that are deleted.
func stopsSoon(p *corev1.PodTemplateSpec) { p.Spec.TerminationGracePeriodSeconds = new(int64(1)) }

// A push in the soak of another one: the content of the first is an old one by now, and counts
// while it is Ready. No more than one instance is out of service.
func TestSecondPushInTheSoakOfTheFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		minReadySeconds int32
		second          string
	}{
		"another-image": {endless, "demo:v3"},
		"taken-back":    {6, "demo:v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			create(t, ns, cache(4, c.minReadySeconds))
			routes := expose(t, ns, "app")
			if c.minReadySeconds != endless {
				settled(t, ns, "app")
			}
			allReady(t, ns, 4)
			routes.served(t, 4)
			before := pods(t, ns)
			rollout := watchRollout(t, ns)
			change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
			podIs(t, ns, 0, "demo:v2")
			oneIsUpdated(t, ns)
			change(t, ns, "app", gen.Default(gen.Image(c.second)))
			podIs(t, ns, 0, c.second)
			if c.minReadySeconds == endless {
				oneIsUpdated(t, ns)
				othersWait(t, ns)
			}
			change(t, ns, "app", minReady(0))
			settled(t, ns, "app")
			after := pods(t, ns)
			sameUIDs(t, before, after)
			for _, p := range after {
				if image(p, "main") != c.second {
					t.Errorf("it should run %s: %s", c.second, cluster.PodLine(p))
				}
			}
			rollout.neverBelow(t, 3)
			routes.neverFewer(t, 3)
		})
	}
}

// What does not serve is corrected at once, whatever the budget; all others keep serving meanwhile.
func TestCorrectionInASoak(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, cache(4, endless))
	routes := expose(t, ns, "app")
	allReady(t, ns, 4)
	routes.served(t, 4)
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:unready")))
	podIs(t, ns, 0, "demo:unready")
	othersWait(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	podIs(t, ns, 0, "demo:v2")
	oneIsUpdated(t, ns)
	othersWait(t, ns)
	// The new content is Ready, and then is not: the others wait all the more.
	flap(t, ns, "app-0")
	othersWait(t, ns)
	change(t, ns, "app", minReady(0))
	settled(t, ns, "app")
	// Instance 0 flapped, which nobody's budget covers: only its own place was empty.
	rollout.neverBelow(t, 3)
	routes.neverFewer(t, 3)
}

// Forced updates and rolling ones count what serves together, where none is available, too.
func TestForcedUpdatesLeaveWhatServes(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, cache(4, endless, gen.Pool("forced"), gen.Use("forced", 0, 1), gen.ForceMaxUnavailable("1")))
	routes := expose(t, ns, "app")
	allReady(t, ns, 4)
	routes.served(t, 4)
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Pool("forced", gen.Image("demo:v3")), gen.Default(gen.Image("demo:v2")))
	podIs(t, ns, 0, "demo:v3")
	oneIsUpdated(t, ns)
	othersWait(t, ns)
	change(t, ns, "app", minReady(0))
	settled(t, ns, "app")
	for i := range 4 {
		podIs(t, ns, i, map[bool]string{true: "demo:v3", false: "demo:v2"}[i < 2])
	}
	rollout.neverBelow(t, 3)
	routes.neverFewer(t, 3)
}
