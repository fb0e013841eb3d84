//go:build cluster

package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// The TApps of a loss. Each of them has its pods on the node that is lost, and could
// have them on refuge, which never is.
const (
	unforced = "unforced" // did not opt in
	forced   = "forced"   // forceDeletePod
	tied     = "tied"     // forceDeletePod, and neverMigrate
	enduring = "enduring" // forceDeletePod, with pods that nobody evicts

	refuge = "node1"
)

// loss is a way to lose a node.
type loss struct {
	node string
	// lose the node, restore it.
	lose, restore func(r *rig, node string)
	// evidence is what TApp tells of the node.
	evidence string
	// untie: neverMigrate is turned off while the node is away.
	untie bool
	// endured: the loss does not end pods that tolerate it, so that there is the TApp
	// enduring as well.
	endured bool
	// collected: Kubernetes itself takes the pods of the node away by force, since the
	// administrator said that it is shut down. That is not up to TApp.
	collected bool
}

var silent = fmt.Sprintf("has not been ready for %s", lostAfter)

func stop(r *rig, node string)  { r.Devcluster("stop", node) }
func start(r *rig, node string) { r.Devcluster("start", node) }
func cut(r *rig, node string)   { r.Devcluster("cut", node) }

// erase stops the node, deletes its Node object, and has somebody delete the pods,
// which are not being deleted because of that. (Kubernetes deletes them after 40 s,
// by force, whatever TApp does; that is not waited for.)
func erase(r *rig, node string) {
	stop(r, node)
	if err := r.Kube.CoreV1().Nodes().Delete(r.Context(), node, metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	for name := range r.Pods() {
		if err := r.Kube.CoreV1().Pods(r.NS).Delete(r.Context(), name, metav1.DeleteOptions{}); err != nil {
			r.Fatal(err)
		}
	}
}

// shutDown stops the node and says so to Kubernetes, by the taint that is there for
// it. That evicts its pods.
func shutDown(r *rig, node string) {
	stop(r, node)
	r.taint(node, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
}

func putIntoService(r *rig, node string) {
	start(r, node)
	r.taint(node)
}

// taint replaces what was tainted by a test; others' taints come and go by themselves.
func (r *rig) taint(node string, taints ...corev1.Taint) {
	r.Helper()
	r.Eventually("the taints of "+node+" change", func(ctx context.Context) error {
		n, err := r.Kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		kept := taints
		for _, t := range n.Spec.Taints {
			if t.Key != corev1.TaintNodeOutOfService {
				kept = append(kept, t)
			}
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": n.ResourceVersion}, "spec": map[string]any{"taints": kept}})
		if err != nil {
			return err
		}
		_, err = r.Kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// on has the pods start on a node, and leave it at once when it is not ready; then
// they may be on the refuge.
func on(node string) gen.Edit {
	hostname := func(names ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names},
		}}
	}
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.TerminationGracePeriodSeconds = new(int64(1))
		t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{hostname(node, refuge)}},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: hostname(node)}},
		}}
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			t.Spec.Tolerations = append(t.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(1)),
			})
		}
	}
}

// endure takes back that the pods leave a node that is not ready.
func endure(t *corev1.PodTemplateSpec) {
	for i := range t.Spec.Tolerations {
		t.Spec.Tolerations[i].TolerationSeconds = nil
	}
}

func forceDelete(t *tappv1.TApp)  { t.Spec.ForceDeletePod = true }
func neverMigrate(t *tappv1.TApp) { t.Spec.NeverMigrate = true }
func mayMigrate(t *tappv1.TApp)   { t.Spec.NeverMigrate = false }

// statusesAre waits until status.statuses has these, by id.
func (r *rig) statusesAre(tapp string, want ...tappv1.InstanceStatus) {
	r.Helper()
	r.Eventually(fmt.Sprintf("the instances of TApp %s are %v", tapp, want), func(ctx context.Context) error {
		t, err := r.TApps.Get(ctx, tapp, metav1.GetOptions{})
		if err != nil {
			return err
		}
		is := t.Status.Statuses
		for id, status := range want {
			if len(is) != len(want) || is[strconv.Itoa(id)] != status {
				return fmt.Errorf("they are %v", is)
			}
		}
		if t.Status.AppStatus != tappv1.AppRunning {
			return fmt.Errorf("status.appStatus is %s", t.Status.AppStatus)
		}
		return nil
	})
}

// cleanNode waits until no pod runs on a node of which the API server knows nothing.
func (r *rig) cleanNode(c *containers) {
	r.Helper()
	r.Eventually("only pods that exist run", func(context.Context) error {
		there := map[types.UID]bool{}
		for _, p := range r.Pods() {
			there[p.UID] = true
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		var errs []error
		for uid, node := range runningPods() {
			if name := c.names[uid]; name != "" && !there[uid] {
				errs = append(errs, fmt.Errorf("%s (UID %s) still runs on %s", name, uid, node))
			}
		}
		return errors.Join(errs...)
	})
}

// saysOf waits until the status of the TApp has said something.
func (r *rig) saysOf(tapp, words string) {
	r.Helper()
	r.Eventually("the status of TApp "+tapp+" tells of the node", func(context.Context) error { return r.told.said(tapp, words) })
}

// repair brings a node back that a failed test has left behind.
func (l loss) repair(r *rig) {
	if r.Failed() {
		// The next test needs the node.
		out, err := r.Cluster.Devcluster(context.WithoutCancel(r.Context()), "start", l.node)
		r.Logf("start %s: %v\n%s", l.node, err, out)
	}
}
