//go:build cluster

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

const (
	running = tappv1.InstanceRunning
	killed  = tappv1.InstanceKilled
)

func start(t *tappv1.TApp) { t.Spec.Statuses = nil }

func TestKillAndStartOne(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app"))
	before := pods(t, ns)
	change(t, ns, "app", gen.Killed(1))
	tapp := instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": running, "1": killed, "2": running})
	onlyPods(t, ns, "app-0", "app-2")
	if s := tapp.Status; s.Replicas != 2 || s.ReadyReplicas != 2 || s.AppStatus != tappv1.AppRunning {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	settled(t, ns, "app") // a stopped instance is nothing to wait for
	change(t, ns, "app", start)
	settled(t, ns, "app")
	after := onlyPods(t, ns, "app-0", "app-1", "app-2")
	if after["app-1"].UID == before["app-1"].UID || after["app-0"].UID != before["app-0"].UID || after["app-2"].UID != before["app-2"].UID {
		t.Error("only instance 1 should have been made anew")
	}
}

// After all instances were stopped they start again, even if the API server takes
// only some of them at first (fault 2).
func TestKillAndStartAll(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app"))
	change(t, ns, "app", gen.Killed(0, 1, 2))
	tapp := instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": killed, "1": killed, "2": killed})
	if tapp.Status.AppStatus != tappv1.AppKilled || tapp.Status.Replicas != 0 {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	onlyPods(t, ns)
	setQuota(t, ns, "2")
	change(t, ns, "app", start)
	hasEvent(t, ns, "app", warning, "FailedCreate", "exceeded quota")
	setQuota(t, ns, "3")
	settled(t, ns, "app")
	onlyPods(t, ns, "app-0", "app-1", "app-2")
}

// setQuota allows so many pods in the namespace, and waits until it is counted.
func setQuota(t *testing.T, ns, most string) {
	t.Helper()
	quotas := suite.Kube.CoreV1().ResourceQuotas(ns)
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(most)},
	}}
	if _, err := quotas.Get(t.Context(), "pods", metav1.GetOptions{}); err == nil {
		if _, err := quotas.Update(t.Context(), q, metav1.UpdateOptions{}); err != nil {
			t.Fatalf("change the quota: %v", err)
		}
	} else if _, err := quotas.Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create a quota: %v", err)
	}
	kubectl(t, ns, "wait", "--for=jsonpath={.status.hard.pods}="+most, "--timeout=5m", "resourcequota/pods")
}

func TestScale(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Pool("last", gen.Image("demo:v2")), gen.Use("last", 4)))
	before := pods(t, ns)
	kubectl(t, ns, "scale", "tapp/app", "--replicas=5")
	settled(t, ns, "app")
	after := onlyPods(t, ns, "app-0", "app-1", "app-2", "app-3", "app-4")
	untouched(t, before, after)
	if image(after["app-3"], "main") != "demo:v1" || image(after["app-4"], "main") != "demo:v2" {
		t.Errorf("a new instance follows its own template: %s; %s", cluster.PodLine(after["app-3"]), cluster.PodLine(after["app-4"]))
	}
	kubectl(t, ns, "scale", "tapp/app", "--replicas=2", "--current-replicas=5")
	tapp := settled(t, ns, "app")
	untouched(t, map[string]*corev1.Pod{"app-0": before["app-0"], "app-1": before["app-1"]}, onlyPods(t, ns, "app-0", "app-1"))
	if len(tapp.Status.Statuses) != 2 {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	kubectl(t, ns, "scale", "tapp/app", "--replicas=0")
	tapp = settled(t, ns, "app")
	onlyPods(t, ns)
	if tapp.Status.AppStatus != tappv1.AppPending || len(tapp.Status.Statuses) != 0 {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
	// The API's own type leaves a number of 0 out of a Scale's spec.
	if got := kubectl(t, ns, "get", "tapp/app", "--subresource=scale", "-o=jsonpath={.spec.replicas} {.status.replicas} {.status.selector}"); got != " 0 app=app" {
		t.Errorf("scale subresource: %s", got)
	}
}

// Ids are numbers: "10" comes after "9", and a scale-down takes the highest.
func TestTenIsMoreThanNine(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(12), gen.Default(gen.Simulated())))
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	settled(t, ns, "app")
	rollout.ascending(t, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	change(t, ns, "app", gen.Replicas(10))
	settled(t, ns, "app")
	if left := pods(t, ns); left["app-10"] != nil || left["app-11"] != nil || len(left) != 10 {
		t.Errorf("%d pods are left", len(left))
	}
}

func TestTemplatePerInstance(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app",
		gen.Pool("a", gen.Image("demo:v2")), gen.Pool("b", gen.Image("demo:v3")), gen.Use("a", 1),
		func(t *tappv1.TApp) { t.Spec.DefaultTemplateName = "b" }))
	for id, want := range []string{"demo:v3", "demo:v2", "demo:v3"} {
		podIs(t, ns, id, want)
	}
	before := pods(t, ns)
	change(t, ns, "app", gen.Use("default", 2))
	settled(t, ns, "app")
	podIs(t, ns, 2, "demo:v1")
	sameUIDs(t, before, pods(t, ns))
}

// A pod that somebody deletes comes back at once.
func TestDeletedPodComesBack(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app"))
	uid := pod(t, ns, "app-1").UID
	kubectl(t, ns, "delete", "pod", "app-1", "--wait=false")
	// Until then the status may be the one from before.
	podWhere(t, ns, "app-1", "is another one", func(p *corev1.Pod) string { return unless(p.UID != uid, "it is the one that was deleted") })
	settled(t, ns, "app")
	onlyPods(t, ns, "app-0", "app-1", "app-2")
	if p := pod(t, ns, "app-1"); p.Annotations[tappv1.AnnotationFailures] != "" {
		t.Errorf("a deletion is no failure: %v", p.Annotations)
	}
}
