//go:build cluster

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// Another template is made the rolling one in the midst of a rollout: the rest of
// the first one's instances follow by force, the others roll, nothing is updated
// twice, and all keep to one count of available instances.
func TestRollingTemplateIsSwitchedInMidRollout(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(8), gen.Default(gen.Probe()), gen.Pool("other"), gen.Use("other", 6, 7), gen.ForceMaxUnavailable("3")))
	before := pods(t, ns)
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	updated(t, ns, "demo:v2", 2)
	rollout.neverBelow(t, 7)
	change(t, ns, "app", gen.Pool("other", gen.Image("demo:v3")), func(t *tappv1.TApp) { t.Spec.UpdateStrategy.Template = "other" })
	settled(t, ns, "app")
	after := pods(t, ns)
	sameUIDs(t, before, after)
	for id := range 8 {
		p := after[fmt.Sprintf("app-%d", id)]
		if want := map[bool]string{true: "demo:v2", false: "demo:v3"}[id < 6]; image(p, "main") != want || restarts(p, "main") != 1 {
			t.Errorf("it should run %s, and have restarted once: %s", want, cluster.PodLine(p))
		}
	}
	rollout.neverBelow(t, 5)
	rollout.reached(t, 5)
	rollout.ascending(t, 3, 0, 1, 2, 3, 4, 5, 6, 7)
}

// When nothing moves for progressDeadlineSeconds the TApp is Stalled, and says of
// every instance that is stuck what it waits for. A template that works gets all of
// them through.
func TestProgressDeadline(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(4), gen.Default(gen.Probe()), gen.Pool("huge"), gen.Use("huge", 2), gen.MaxUnavailable("2"), func(t *tappv1.TApp) { t.Spec.ProgressDeadlineSeconds = new(int32(3)) }))
	before := pods(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:missing")), gen.Pool("huge", func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
	}))
	tapp := stalled(t, ns, "app", "nothing moved for 3 seconds: 2 of 4 instances are available, ",
		"; instance 0: container main has not restarted with image demo:missing", "; instance 2: its pod has no node: ")
	for _, kind := range []string{tappv1.ConditionStalled, tappv1.ConditionProgressing} {
		if c := meta.FindStatusCondition(tapp.Status.Conditions, kind); c.Reason != "ProgressDeadlineExceeded" {
			t.Errorf("status: %s", cluster.StatusOf(tapp))
		}
	}
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")), gen.Pool("huge", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources.Requests = nil }))
	settled(t, ns, "app")
	after := pods(t, ns)
	delete(before, "app-2")
	sameUIDs(t, before, after)
}

// A node that has no room for a larger request now is waited for, which is told, and
// the pod stays the same one.
func TestResizeDeferred(t *testing.T) {
	t.Parallel()
	node, err := suite.Kube.CoreV1().Nodes().Get(t.Context(), "node1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	share := func(percent int64) string {
		return fmt.Sprintf("%dm", node.Status.Allocatable.Cpu().MilliValue()*percent/100)
	}
	onNode1 := gen.Default(func(p *corev1.PodTemplateSpec) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "node1"}
		p.Spec.TerminationGracePeriodSeconds = new(int64(1))
	})
	ns, _ := run(t, gen.TApp("neighbour", gen.Replicas(1), onNode1, requests(share(50))))
	create(t, ns, gen.TApp("app", gen.Replicas(1), onNode1, requests("10m"), resizing))
	settled(t, ns, "app")
	before := pods(t, ns)["app-0"]
	change(t, ns, "app", requests(share(60)))
	tappWhere(t, ns, "app", "says that the node has no room", func(tapp *tappv1.TApp) string {
		c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionProgressing)
		return unless(c != nil && strings.Contains(c.Message, "instance 0: ") && strings.Contains(c.Message, "Deferred"), "it does not")
	})
	change(t, ns, "neighbour", gen.Killed(0))
	settled(t, ns, "app")
	p := podWhere(t, ns, "app-0", "has more", func(p *corev1.Pod) string {
		has := p.Status.ContainerStatuses[0].Resources
		return unless(has != nil && has.Requests.Cpu().Cmp(resource.MustParse(share(60))) == 0, fmt.Sprintf("has %+v", has))
	})
	if p.UID != before.UID || restarts(p, "main") != 0 {
		t.Errorf("it should be the same pod: %s", cluster.PodLine(p))
	}
}
