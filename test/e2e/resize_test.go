//go:build cluster

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// requests of the container, as an edit of its template.
func requests(cpu string) gen.Option {
	return func(t *tappv1.TApp) {
		t.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("16Mi"),
		}
	}
}

func resizing(t *tappv1.TApp) { t.Spec.UpdateStrategy.InPlaceUpdate.Resources = true }

// With inPlaceUpdate.resources a pod that gets more cpu stays the same pod, and
// its container does not restart; with a new image in the same change, only for
// that. Going back is the same.
func TestResize(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", requests("10m"), resizing))
	before := pods(t, ns)
	has := func(cpu string, restarts int32) {
		t.Helper()
		settled(t, ns, "app")
		for name, pod := range onlyPods(t, ns, "app-0", "app-1", "app-2") {
			c := pod.Status.ContainerStatuses[0]
			if c.Resources == nil || c.Resources.Requests.Cpu().Cmp(resource.MustParse(cpu)) != 0 {
				t.Errorf("%s has %+v, not %s", name, c.Resources, cpu)
			}
			if pod.UID != before[name].UID || c.RestartCount != restarts {
				t.Errorf("%s was restarted %d times, and is the same pod: %t", name, c.RestartCount, pod.UID == before[name].UID)
			}
		}
	}
	change(t, ns, "app", requests("20m"))
	has("20m", 0)
	change(t, ns, "app", requests("30m"), gen.Default(gen.Image("demo:v2")))
	has("30m", 1)
	change(t, ns, "app", requests("20m"))
	has("20m", 1)
}

// What the namespace gave the containers stays: the template asks for one request, and only
// that changes in the running pods.
func TestResizeLeavesDefaults(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	defaults := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, DefaultRequest: list("5m", "16Mi"), Default: list("200m", "128Mi")}}}}
	if _, err := suite.Kube.CoreV1().LimitRanges(ns).Create(t.Context(), defaults, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create a LimitRange: %v", err)
	}
	create(t, ns, gen.TApp("app", requests("10m"), resizing, gen.Default(gen.Container(sidecar("nginx:1.7.9")))))
	settled(t, ns, "app")
	before := pods(t, ns)
	change(t, ns, "app", requests("20m"))
	settled(t, ns, "app")
	for name, pod := range onlyPods(t, ns, "app-0", "app-1", "app-2") {
		if pod.UID != before[name].UID {
			t.Errorf("%s is another pod", name)
		}
		for i, cpu := range []string{"20m", "5m"} {
			r := pod.Spec.Containers[i].Resources
			if want := list(cpu, "16Mi"); !equality.Semantic.DeepEqual(r.Requests, want) || !equality.Semantic.DeepEqual(r.Limits, list("200m", "128Mi")) {
				t.Errorf("container %d of %s has %v, and not %v of the same limits as before", i, name, r, want)
			}
		}
	}
}

// What no node can provide is no reason to take more instances than the budget
// allows, and a smaller request gets all of them back.
func TestResizeInfeasible(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", requests("10m"), resizing))
	before := pods(t, ns)
	change(t, ns, "app", requests("1000"))
	tappWhere(t, ns, "app", "one instance waits for a node", func(tapp *tappv1.TApp) string {
		pending := 0
		for _, pod := range pods(t, ns) {
			if pod.UID != before[pod.Name].UID && pod.Spec.NodeName == "" {
				pending++
			}
		}
		if s := tapp.Status; pending != 1 || s.AvailableReplicas != 2 {
			return fmt.Sprintf("%d new pods have no node", pending)
		}
		return ""
	})
	change(t, ns, "app", requests("15m"))
	settled(t, ns, "app")
	same := 0
	for name, pod := range onlyPods(t, ns, "app-0", "app-1", "app-2") {
		if pod.UID == before[name].UID {
			same++
		}
	}
	if same != 2 {
		t.Errorf("%d of the first pods are still there, not 2", same)
	}
}

// Who does not ask for it gets new pods.
func TestResizeIsOptional(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", requests("10m")))
	before := pods(t, ns)
	change(t, ns, "app", requests("20m"))
	settled(t, ns, "app")
	for name, pod := range onlyPods(t, ns, "app-0", "app-1", "app-2") {
		if pod.UID == before[name].UID || pod.Spec.Containers[0].Resources.Requests.Cpu().String() != "20m" {
			t.Errorf("%s is the same pod: %t, and requests %v", name, pod.UID == before[name].UID, pod.Spec.Containers[0].Resources.Requests)
		}
	}
}
