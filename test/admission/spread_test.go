//go:build cluster

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// spreadReplicas of each workload whose pods are counted.
const spreadReplicas = 8

// zones gives each node of the cluster the zone that a function names by its number, or none,
// until the test ends. It returns the nodes' names.
func (r *rig) zones(of func(node int) string) (names []string) {
	r.Helper()
	nodes, err := r.Kube.CoreV1().Nodes().List(r.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) < 5 {
		r.Fatalf("%d nodes: %v", len(nodes.Items), err)
	}
	label := func(ctx context.Context, node, zone string) {
		value := any(zone)
		if zone == "" {
			value = nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{corev1.LabelTopologyZone: value}}})
		if err == nil {
			_, err = r.Kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil {
			r.Errorf("label node %s: %v", node, err)
		}
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		names = append(names, n.Name)
		label(r.Context(), n.Name, of(i))
		r.Cleanup(func() { label(context.Background(), n.Name, n.Labels[corev1.LabelTopologyZone]) })
	}
	return names
}

// fill takes most of a node.
func (r *rig) fill(node string) {
	r.Helper()
	_, err := r.Kube.CoreV1().Pods(r.NS).Create(r.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "filler"}, Spec: corev1.PodSpec{
		NodeName: node, Containers: []corev1.Container{{Name: "filler", Image: "demo:v1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("600"), corev1.ResourceMemory: resource.MustParse("2400Gi")}}}}}}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
}

// onNodes lets pods run on these nodes alone.
func onNodes(names ...string) gen.Edit {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names}}}}}}}
	}
}

func (r *rig) statefulSet(name string, t corev1.PodTemplateSpec) {
	r.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(spreadReplicas)), Template: t,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": t.Labels["app"]}}, PodManagementPolicy: appsv1.ParallelPodManagement}}
	if _, err := r.Kube.AppsV1().StatefulSets(r.NS).Create(r.Context(), set, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// counts waits until all pods of an app are on nodes, and counts them for each.
func (r *rig) counts(app string) map[string]int {
	r.Helper()
	var out map[string]int
	r.Eventually("pods of "+app+" are on nodes", func(ctx context.Context) error {
		out = map[string]int{}
		pods, err := r.Kube.CoreV1().Pods(r.NS).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		n := 0
		for i := range pods.Items {
			if node := pods.Items[i].Spec.NodeName; node != "" {
				out[node]++
				n++
			}
		}
		return cluster.When(n != spreadReplicas, fmt.Sprint(out))
	})
	return out
}

// both gives a template the constraints that TApp gives pods where all nodes have zones.
func both(app string) gen.Edit {
	return func(t *corev1.PodTemplateSpec) {
		for key, skew := range map[string]int32{corev1.LabelHostname: 3, corev1.LabelTopologyZone: 5} {
			t.Spec.TopologySpreadConstraints = append(t.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew,
				WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}})
		}
	}
}

// keysOf are the topology keys by which an instance's pod is spread.
func (r *rig) keysOf(pod string) (keys []string) {
	r.Helper()
	p, err := r.Kube.CoreV1().Pods(r.NS).Get(r.Context(), pod, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	for _, c := range p.Spec.TopologySpreadConstraints {
		keys = append(keys, c.TopologyKey)
	}
	return keys
}

// TestSpread: kube-scheduler puts a TApp's instances beside those of a StatefulSet, on nodes of
// which one is fuller than the others, whether no node has a zone, all but that one, or all.
// Without constraints none would be there, and with the zone always, only where all have one.
func TestSpread(t *testing.T) {
	host, zone := corev1.LabelHostname, corev1.LabelTopologyZone
	for _, c := range []struct {
		name string
		zone func(node int) string
		keys []string
	}{
		{"no node has a zone", func(int) string { return "" }, []string{host}},
		{"the fuller one has none", func(i int) string { return strings.Repeat("z", min(i, 1)) }, []string{host}},
		{"all have one", func(i int) string { return fmt.Sprintf("z%d", i%2) }, []string{host, zone}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.ForceDeletePods()
			nodes := r.zones(c.zone)
			fuller := nodes[0]
			r.fill(fuller)
			r.Start([]string{controller.KindTApp})
			for _, n := range []int{2, 4} {
				some := onNodes(nodes[:n]...)
				name := func(what string) string { return fmt.Sprintf("%s-on-%d", what, n) }
				set, ours, plain, always := name("set"), name("ours"), name("plain"), name("always")
				r.statefulSet(set, gen.Template(set, "demo:v1", gen.Simulated(), some))
				r.Create(manifest(ours, gen.Replicas(spreadReplicas), gen.Default(some)))
				r.Create(manifest(plain, gen.Replicas(spreadReplicas), gen.Default(some), func(t *tappv1.TApp) { t.Spec.DefaultTopologySpread = tappv1.NoTopologySpread }))
				r.Create(manifest(always, gen.Replicas(spreadReplicas), gen.Default(some, both(always))))
				for _, app := range []string{set, ours} {
					counts := r.counts(app)
					t.Logf("%s: %v", app, counts)
					if counts[fuller] == 0 || len(counts) != n {
						t.Errorf("%s: %v, and none is on one of %d nodes", app, counts, n)
					}
				}
				if got := r.counts(plain); got[fuller] > 0 {
					t.Errorf("without constraints: %v, so that this test would not notice their absence", got)
				}
				if got := r.counts(always); (got[fuller] > 0) != (len(c.keys) == 2) {
					t.Errorf("with both constraints: %v on %q", got, fuller)
				}
				if keys := r.keysOf(ours + "-0"); !slices.Equal(keys, c.keys) {
					t.Errorf("pods are spread by %q, want %q", keys, c.keys)
				}
				if keys := r.keysOf(plain + "-0"); len(keys) > 0 {
					t.Errorf("pods are spread by %q, where none is asked for", keys)
				}
			}
		})
	}
}

// TestSpreadRestartsNothing: neither another setting, nor another operator's choice, nor zones that
// come and go touch pods.
func TestSpreadRestartsNothing(t *testing.T) {
	r := newRig(t, nil)
	r.ForceDeletePods()
	first := r.Start([]string{controller.KindTApp})
	r.Create(manifest("web"))
	r.WaitReady("web")
	before := r.Starts("app=web")
	for _, asked := range []tappv1.DefaultTopologySpread{tappv1.NoTopologySpread, tappv1.SystemTopologySpread, ""} {
		r.Change("web", func(t *tappv1.TApp) { t.Spec.DefaultTopologySpread = asked })
		r.WaitReady("web")
	}
	first.Stop()
	r.zones(func(int) string { return "" })
	r.Start([]string{controller.KindTApp}, func(c *controller.Config) { c.DefaultTopologySpread = string(tappv1.NoTopologySpread) })
	r.Change("web", gen.Replicas(4))
	r.WaitReady("web")
	after := r.Starts("app=web")
	delete(after, "web-3")
	if !maps.Equal(before, after) {
		t.Errorf("they were %v, and are %v", before, after)
	}
	if old, added := r.keysOf("web-0"), r.keysOf("web-3"); len(old) != 2 || len(added) != 0 {
		t.Errorf("the first one is spread by %q, the one that was added by %q", old, added)
	}
}
