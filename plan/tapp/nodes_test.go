package tapp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// lostStory is a TApp with a pod past its grace period on each of so many nodes.
func lostStory(t *testing.T, nodes int) Input {
	t.Helper()
	in := story(int32(nodes), podStory{IDs: fmt.Sprintf("0-%d", nodes-1), Dying: "1m ago"}).input(t)
	for n, pod := range in.Pods {
		pod.Spec.NodeName = fmt.Sprintf("node-%02d", n)
	}
	in.TApp.Spec.ForceDeletePod = true
	return in
}

// TestEvidenceInTurns: however few nodes are read at a time, each has its turn, and
// those that the status tells of are read first.
func TestEvidenceInTurns(t *testing.T) {
	in := lostStory(t, 9)
	for after, want := range map[string][]string{
		"":        {"node-07", "node-00", "node-01", "node-02", "node-03", "node-04", "node-05", "node-06", "node-08"},
		"node-02": {"node-07", "node-03", "node-04", "node-05", "node-06", "node-08", "node-00", "node-01", "node-02"},
		"node-99": {"node-07", "node-00", "node-01", "node-02", "node-03", "node-04", "node-05", "node-06", "node-08"},
	} {
		in.NodesAfter = after
		in.TApp.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionForceDeleted, Status: metav1.ConditionTrue, Message: "node node-07 does not exist any more; and 3 more"}}
		if got := Compute(in).Evidence; !slices.Equal(got, want) {
			t.Errorf("after %q: %v, want %v", after, got, want)
		}
	}
}

// TestAllNodesLost: with a few reads a plan, and with less room in the status than there
// are nodes, every pod is deleted by force sooner or later.
func TestAllNodesLost(t *testing.T) {
	const nodes, reads, most = 60, 7, 40
	in := lostStory(t, nodes)
	for plans := 0; len(in.Pods) > 0; plans++ {
		if plans == most {
			t.Fatalf("after %d plans %d pods are left", most, len(in.Pods))
		}
		in.Nodes = nil
		asked := Compute(in).Evidence
		asked = asked[:min(reads, len(asked))]
		in.Nodes = map[string]NodeState{}
		for _, name := range asked {
			in.Nodes[name] = NodeState{}
		}
		in.NodesAfter = asked[len(asked)-1]
		p := Compute(in)
		for _, a := range p.Actions {
			if a.Op == OpForceDelete {
				in.Pods = slices.DeleteFunc(in.Pods, func(p *corev1.Pod) bool { return p == a.Pod })
			}
		}
		in.TApp.Status = p.Status
	}
}

// TestHeldInTurns: with a few reads a plan, Stalled comes to tell of as many lost nodes as it
// has room for and keeps telling of them, and it ends when they were all seen to be back.
func TestHeldInTurns(t *testing.T) {
	const nodes, reads = 60, 7
	in := lostStory(t, nodes)
	in.TApp.Spec.ForceDeletePod = false
	round := func(state NodeState) *metav1.Condition {
		for range (nodes + reads - 1) / reads {
			in.Nodes = nil
			asked := Compute(in).Evidence[:reads]
			in.Nodes, in.NodesAfter = map[string]NodeState{}, asked[reads-1]
			for _, name := range asked {
				in.Nodes[name] = state
			}
			p := Compute(in)
			wantOps(t, p)
			in.TApp.Status = p.Status
		}
		return meta.FindStatusCondition(in.TApp.Status.Conditions, tappv1.ConditionStalled)
	}
	for range 3 {
		c := round(NodeState{})
		if c.Status != metav1.ConditionTrue || c.Reason != ReasonNodeLost || len(c.Message) > 1024 ||
			!strings.Contains(c.Message, "node node-00 does not exist any more (instance 0); node node-01 does not exist any more (instance 1); ") {
			t.Fatalf("%s %s, %d bytes: %s", c.Status, c.Reason, len(c.Message), c.Message)
		}
	}
	if c := round(NodeState{Exists: true}); c.Status != metav1.ConditionFalse {
		t.Errorf("all nodes are back: %s %s", c.Reason, c.Message)
	}
}

// TestNothingGoesByEarlierReads: what an earlier read said is told where nothing goes by force
// anyway, and nothing goes by it although the status has the same evidence.
func TestNothingGoesByEarlierReads(t *testing.T) {
	in := lostStory(t, 2)
	in.NodesBefore = map[string]NodeState{"node-00": {}, "node-01": {}}
	in.TApp.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionForceDeleted, Status: metav1.ConditionTrue, Message: "node node-00 does not exist any more; node node-01 does not exist any more"}}
	wantOps(t, Compute(in))
	in.TApp.Spec.ForceDeletePod = false
	p := Compute(in)
	wantOps(t, p)
	if p.Instances[0].Reason != ReasonNodeLost || p.Instances[1].Reason != ReasonNodeLost || len(p.Evidence) != 2 {
		t.Errorf("%+v, and nodes to read: %q", p.Instances, p.Evidence)
	}
}
