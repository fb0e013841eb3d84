//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/termination"
	"tkestack.io/tapp/test/gen"
)

// goingClaim has instance 1 of a TApp of three write to its volume, and deletes its claim as
// somebody would. The condition, the event and the words of kubectl tapp tell of it.
func goingClaim(t *testing.T, opts ...gen.Option) (ns string, before map[string]*corev1.Pod) {
	t.Helper()
	ns, _ = run(t, gen.TApp("app", append([]gen.Option{withClaim("1Mi")}, opts...)...))
	before = pods(t, ns)
	remember(t, ns, before["app-1"])
	kubectl(t, ns, "delete", "pvc", "data-app-1", "--wait=false")
	tappWhere(t, ns, "app", "ClaimTerminating", func(tapp *tappv1.TApp) string {
		c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionClaimTerminating)
		return unless(c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "claim data-app-1 ") && strings.Contains(c.Message, "of instance 1 ") && strings.Contains(c.Message, "Retain"),
			fmt.Sprintf("it is %+v", c))
	})
	hasEvent(t, ns, "app", warning, termination.Reason, "data-app-1", "goes with its pod", "Retain")
	return ns, before
}

// has checks that a pod, which is the same, finds what it wrote to its volume.
func has(t *testing.T, ns string, p *corev1.Pod) {
	t.Helper()
	if got := kubectl(t, ns, "exec", p.Name, "--", "demo", "read", "/data/pod"); got != string(p.UID) {
		t.Errorf("%s finds %q on its volume", p.Name, got)
	}
}

// held waits until the TApp is Stalled by instance 1 alone, whose pod is the same.
func held(t *testing.T, ns string, before map[string]*corev1.Pod) {
	t.Helper()
	tapp := stalled(t, ns, "app", "instance 1: its claim data-app-1 is being deleted", "--now")
	if c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionStalled); c.Reason != termination.Reason {
		t.Errorf("Stalled for the reason %s", c.Reason)
	}
	if now := pods(t, ns)["app-1"]; now == nil || now.UID != before["app-1"].UID || now.DeletionTimestamp != nil {
		t.Fatal("the pod of instance 1 is another one, or goes")
	}
	has(t, ns, before["app-1"])
	if told := plugin(t, ns, "explain", "app", "1"); !strings.Contains(told, termination.Reason) || !strings.Contains(told, "--now") {
		t.Errorf("explain tells\n%s", told)
	}
	if told := plugin(t, ns, "plan", "app"); !strings.Contains(told, "1 instance waits (1): ") {
		t.Errorf("plan tells\n%s", told)
	}
}

// another waits until instance 1 has another pod and another claim, and nothing is told of the old one.
func another(t *testing.T, ns string, before map[string]*corev1.Pod) {
	t.Helper()
	podGone(t, ns, "app-1", before["app-1"].UID)
	tapp := settled(t, ns, "app")
	if c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionClaimTerminating); c == nil || c.Status != metav1.ConditionFalse {
		tappWhere(t, ns, "app", "no claim is being deleted", func(tapp *tappv1.TApp) string {
			c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionClaimTerminating)
			return unless(c != nil && c.Status == metav1.ConditionFalse, fmt.Sprintf("it is %+v", c))
		})
	}
}

// A claim that somebody deletes keeps its instance: what would end its pod waits, the others
// go on, and with --now it goes.
func TestTerminatingClaim(t *testing.T) {
	t.Parallel()
	follow := retention(tappv1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: tappv1.RetainPersistentVolumeClaim, WhenScaled: tappv1.DeletePersistentVolumeClaim})
	others := func(t *testing.T, ns string, before map[string]*corev1.Pod) { // are recreated
		t.Helper()
		for _, name := range []string{"app-0", "app-2"} {
			podGone(t, ns, name, before[name].UID)
		}
	}
	for name, c := range map[string]struct {
		opts []gen.Option
		do   func(t *testing.T, ns string, before map[string]*corev1.Pod)
		now  []string // the way on; none: it was not held
	}{
		"rollout": {nil, func(t *testing.T, ns string, before map[string]*corev1.Pod) {
			change(t, ns, "app", gen.Default(gen.Env("A", "1")))
			others(t, ns, before)
		}, []string{"restart", "app", "1", "--now"}},
		"forced": {[]gen.Option{gen.Pool("blue", gen.Env("A", "1"))}, func(t *testing.T, ns string, _ map[string]*corev1.Pod) {
			change(t, ns, "app", gen.Use("blue", 1))
		}, []string{"restart", "app", "1", "--now"}},
		"restart": {nil, func(t *testing.T, ns string, _ map[string]*corev1.Pod) { plugin(t, ns, "restart", "app", "1") }, []string{"restart", "app", "1", "--now"}},
		"kill": {[]gen.Option{follow}, func(t *testing.T, ns string, _ map[string]*corev1.Pod) { plugin(t, ns, "kill", "app", "1") },
			[]string{"kill", "app", "1", "--now"}},
		"scale-down": {nil, func(t *testing.T, ns string, before map[string]*corev1.Pod) {
			change(t, ns, "app", gen.Replicas(1))
			podGone(t, ns, "app-2", before["app-2"].UID)
		}, []string{"restart", "app", "1", "--now"}},
		"scale-down-with-its-claims": {[]gen.Option{follow}, func(t *testing.T, ns string, before map[string]*corev1.Pod) {
			change(t, ns, "app", gen.Replicas(1))
			podGone(t, ns, "app-1", before["app-1"].UID)
		}, nil},
		"in-place": {nil, func(t *testing.T, ns string, before map[string]*corev1.Pod) {
			change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
			settled(t, ns, "app")
			sameUIDs(t, before, pods(t, ns))
			has(t, ns, before["app-1"])
			kubectl(t, ns, "delete", "pod", "app-1")
		}, nil},
		"eviction": {nil, func(t *testing.T, ns string, before map[string]*corev1.Pod) {
			if err := suite.Kube.CoreV1().Pods(ns).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app-1"}}); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"by-hand": {nil, func(t *testing.T, ns string, _ map[string]*corev1.Pod) { kubectl(t, ns, "delete", "pod", "app-1") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, before := goingClaim(t, c.opts...)
			settled(t, ns, "app")
			c.do(t, ns, before)
			if c.now != nil {
				held(t, ns, before)
				plugin(t, ns, c.now...)
			}
			another(t, ns, before)
		})
	}
}

// A deletion of the TApp does not wait for a claim that is being deleted, nor does that of
// its namespace.
func TestTerminatingClaimHoldsNoDeletion(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, ns string){
		"tapp":      func(t *testing.T, ns string) { kubectl(t, ns, "delete", "tapp", "app") },
		"namespace": func(t *testing.T, ns string) { kubectl(t, ns, "delete", "namespace", ns, "--wait=false") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, before := goingClaim(t)
			end(t, ns)
			for name, pod := range before {
				podGone(t, ns, name, pod.UID)
			}
			eventually(t, "the claim is gone", func(ctx context.Context) error {
				list, err := suite.Kube.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
				if err != nil {
					return err
				}
				for i := range list.Items {
					if list.Items[i].Name == "data-app-1" {
						return fmt.Errorf("it is there, with %v", list.Items[i].Finalizers)
					}
				}
				return nil
			})
		})
	}
}
