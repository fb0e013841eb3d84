//go:build cluster

package nodes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	proof "tkestack.io/tapp/plan/evidence"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/gen"
)

// A node is lost in each of the ways that there are, under three TApps at once (see
// loss.go), and comes back.
//
// Without forceDeletePod nothing happens: the pod stays, dying, and the TApp says
// why. With it the next pod comes as soon as there is evidence, which is told. With
// neverMigrate it waits for its node. Pods that tolerate the loss are not touched,
// whatever the TApp has opted in to.
func TestNodeDies(t *testing.T) {
	t.Parallel()
	loss{node: "node2", lose: stop, restore: start, evidence: silent, endured: true}.test(t)
}

func TestNodeIsCutOff(t *testing.T) {
	t.Parallel()
	loss{node: "node3", lose: cut, restore: start, evidence: silent, untie: true, endured: true}.test(t)
}

// This runs before the two above, which lose the same nodes again.
func TestNodeIsLostForGood(t *testing.T) {
	t.Run("object-deleted", func(t *testing.T) {
		t.Parallel()
		loss{node: "node2", lose: erase, restore: start, evidence: "does not exist any more"}.test(t)
	})
	t.Run("out-of-service", func(t *testing.T) {
		t.Parallel()
		loss{node: "node3", lose: shutDown, restore: putIntoService, collected: true,
			evidence: "is tainted node.kubernetes.io/out-of-service"}.test(t)
	})
}

func (l loss) test(t *testing.T) {
	r := newRig(t)
	template := gen.Default(gen.Probe(), on(l.node))
	tapps := []*tappv1.TApp{
		gen.TApp(unforced, gen.Replicas(2), template),
		gen.TApp(forced, gen.Replicas(2), template, forceDelete),
		gen.TApp(tied, gen.Replicas(1), template, forceDelete, neverMigrate),
	}
	if l.endured {
		tapps = append(tapps, gen.TApp(enduring, gen.Replicas(2), template, gen.Default(endure), forceDelete))
	}
	r.create(tapps...)
	before := r.Pods()
	for name, p := range before {
		if p.Spec.NodeName != l.node {
			t.Fatalf("pod %s is on %s, and not on %s", name, p.Spec.NodeName, l.node)
		}
	}
	opted := []string{forced + "-0", forced + "-1", tied + "-0"}
	if l.collected {
		opted = append(opted, unforced+"-0", unforced+"-1")
	}
	running := watchContainers(r, opted...)
	requests := r.FollowAudit()

	l.lose(r, l.node)
	t.Cleanup(func() { l.repair(r) })
	evidence := "node " + l.node + " " + l.evidence
	l.isForced(r, before, evidence)
	l.staysTied(r, before, evidence)
	if l.collected {
		for _, name := range []string{unforced + "-0", unforced + "-1"} {
			r.podIs(name, "goes on elsewhere, by Kubernetes' doing", func(p *corev1.Pod) bool { return p.Spec.NodeName == refuge && isReady(p) })
		}
	} else {
		l.isPatient(r, before, evidence)
	}
	if l.endured {
		l.isEndured(r)
	}
	if l.untie {
		r.Change(tied, mayMigrate)
		r.podIs(tied+"-0", "migrates", func(p *corev1.Pod) bool { return p.Spec.NodeName == refuge && isReady(p) })
		r.WaitEvent(tied, "", "SuccessfulDelete", "which it need not wait for any more")
	}

	if !running.ranTwice(forced + "-0") {
		t.Error("the containers of the lost node go on, so that two should have been seen to run: who looks is blind")
	}

	l.restore(r, l.node)
	for _, t := range tapps {
		r.WaitReady(t.Name)
	}
	if l.endured {
		r.statusesAre(enduring, tappv1.InstanceRunning, tappv1.InstanceRunning)
	}
	r.cleanNode(running)
	for _, name := range []string{forced, tied} {
		c := meta.FindStatusCondition(r.Get(name).Status.Conditions, tappv1.ConditionForceDeleted)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "Recovered" || c.Message != evidence {
			t.Errorf("TApp %s: the condition ForceDeleted should keep the evidence: %+v", name, c)
		}
	}
	after := r.Pods()
	for name, p := range after {
		if same := before[name].UID == p.UID; same != strings.HasPrefix(name, enduring) {
			t.Errorf("pod %s is the one that it was: %v; those that are evicted should be others, and no more", name, same)
		}
	}
	if p := after[tied+"-0"]; !l.untie && p.Spec.NodeName != l.node {
		t.Errorf("%s came up on %s; it has run on %s", p.Name, p.Spec.NodeName, l.node)
	}
	l.nothingForced(r, requests)
}

// isForced: the instances go on elsewhere, with the evidence told.
func (l loss) isForced(r *rig, before map[string]*corev1.Pod, evidence string) {
	r.Helper()
	for _, name := range []string{forced + "-0", forced + "-1"} {
		r.podIs(name, "goes on elsewhere", func(p *corev1.Pod) bool {
			return p.UID != before[name].UID && p.Spec.NodeName == refuge && isReady(p)
		})
	}
	r.WaitEvent(forced, "", "SuccessfulDelete", "deleted by force")
	r.WaitEvent(forced, "", "SuccessfulDelete", evidence)
}

// staysTied: with neverMigrate the next pod waits for the node.
func (l loss) staysTied(r *rig, before map[string]*corev1.Pod, evidence string) {
	r.Helper()
	name := tied + "-0"
	p := r.podIs(name, "waits for its node", func(p *corev1.Pod) bool {
		return p.UID != before[name].UID && isUnschedulable(p)
	})
	r.WaitEvent(tied, "", "SuccessfulDelete", evidence)
	if nodes := r.Get(tied).Status.Nodes; nodes["0"] != l.node {
		r.Errorf("status.nodes is %v", nodes)
	}
	if p.Spec.NodeName != "" {
		r.Errorf("pod %s, which may not migrate, is on %s", name, p.Spec.NodeName)
	}
}

// isPatient: the pods are dying, and the TApp says what they wait for, in its conditions and
// as Stalled. When all is over it is Ready, and not Stalled any more.
func (l loss) isPatient(r *rig, before map[string]*corev1.Pod, evidence string) {
	r.Helper()
	words := evidence + "; spec.forceDeletePod is false, so that the instance waits until the pod is gone"
	r.saysOf(unforced, words)
	var held proof.Held
	held.Add(evidence, 0)
	held.Add(evidence, 1)
	r.saysOf(unforced, "Stalled=True NodeLost: "+strings.Join(held.Why(ids.Instances), proof.Separator))
	r.statusesAre(unforced, tappv1.InstanceKilling, tappv1.InstanceKilling)
	for _, name := range []string{unforced + "-0", unforced + "-1"} {
		if p := r.Pods()[name]; p == nil || p.UID != before[name].UID || p.DeletionTimestamp == nil {
			r.Errorf("%s should be dying, and be the same pod: %v", name, p)
		}
		if runningPods()[before[name].UID] != l.node {
			r.Errorf("the containers of %s should go on on %s", name, l.node)
		}
	}
}

// isEndured: the pods stay, and are not ready, so that their instances are Pending.
// Unknown is the one whose pod has that phase. Kubernetes has ceased to set it when it
// hears nothing of a node, so that the test does, as those of old; it lasts until the
// kubelet is back, which knows better.
func (l loss) isEndured(r *rig) {
	r.Helper()
	r.statusesAre(enduring, tappv1.InstancePending, tappv1.InstancePending)
	_, err := r.Kube.CoreV1().Pods(r.NS).Patch(r.Context(), enduring+"-0", types.MergePatchType, []byte(`{"status":{"phase":"Unknown"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		r.Fatal(err)
	}
	r.statusesAre(enduring, tappv1.InstanceUnknown, tappv1.InstancePending)
}

// nothingForced: TApp itself has deleted no pod of a TApp that did not opt in.
func (l loss) nothingForced(r *rig, requests *audit.Log) {
	r.Helper()
	deletes := r.Requests(requests, audit.Filter{Agent: "tapp/", Verbs: []string{"delete"}, Resource: "pods", Namespace: r.NS})
	if len(deletes) == 0 {
		r.Error("the audit log has no delete of TApp's at all")
	}
	for _, d := range deletes {
		if !strings.HasPrefix(d.Name, forced) && !strings.HasPrefix(d.Name, tied) {
			r.Errorf("TApp deleted a pod that it may not delete: %s", d)
		}
	}
}

func isReady(p *corev1.Pod) bool { return condition(p, corev1.PodReady) == corev1.ConditionTrue }

func isUnschedulable(p *corev1.Pod) bool {
	return condition(p, corev1.PodScheduled) == corev1.ConditionFalse
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}
