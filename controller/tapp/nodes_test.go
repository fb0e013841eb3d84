package tapp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

const nodesPerSync = 200

// onNodes is a TApp with a pod past its grace period on each of so many nodes.
func onNodes(nodes int) *view {
	app := someTApp("a")
	app.Spec.Replicas = new(int32(nodes))
	v := &view{tapp: app}
	for id := range nodes {
		pod := somePod(fmt.Sprintf("a-%d", id), fmt.Sprintf("u%d", id), "1")
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(app, tappv1.GroupVersionKind())}
		pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
		pod.Spec.NodeName = fmt.Sprintf("node-%d", id)
		v.pods = append(v.pods, pod)
	}
	return v
}

// TestNodesInTurn: of more nodes than one sync reads, the next one reads the others.
func TestNodesInTurn(t *testing.T) {
	const nodes = nodesPerSync + 50
	s := &stub{answer: func(_, path, _ string) (int, any) {
		n := &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return 200, n
	}}
	v := onNodes(nodes)
	v.tapp.Spec.ForceDeletePod = true
	c, o := s.newController(t), new(object)
	read := map[string]int{}
	for range 2 {
		before := len(s.asked())
		if _, err := c.compute(t.Context(), v, o); err != nil {
			t.Fatal(err)
		}
		asked := s.asked()[before:]
		if len(asked) != nodesPerSync {
			t.Errorf("%d nodes were read at once", len(asked))
		}
		for _, ask := range asked {
			read[strings.TrimPrefix(ask, "GET /api/v1/nodes/")]++
		}
	}
	if len(read) != nodes {
		t.Errorf("two syncs read %d of %d nodes", len(read), nodes)
	}
}

// TestNodesInTurnAtRest: where more nodes are lost than one sync reads, and nothing may be
// deleted by force, syncs come to one status, whichever nodes they read.
func TestNodesInTurnAtRest(t *testing.T) {
	const nodes = nodesPerSync + 50
	s := &stub{answer: func(_, path, _ string) (int, any) {
		return 404, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404}
	}}
	v := onNodes(nodes)
	c, o := s.newController(t), new(object)
	sync := func() *plan.Plan {
		p, err := c.compute(t.Context(), v, o)
		if err != nil {
			t.Fatal(err)
		}
		v.tapp = v.tapp.DeepCopy()
		v.tapp.Status = p.Status
		return &p
	}
	sync()
	sync() // by now each was read
	before := v.tapp.Status.DeepCopy()
	for n := range 8 {
		p := sync()
		if !equality.Semantic.DeepEqual(before, &p.Status) {
			t.Fatalf("sync %d tells\n%v\nand the ones before it\n%v", n, p.Status.Conditions, before.Conditions)
		}
		for _, i := range p.Instances {
			if i.Reason != plan.ReasonNodeLost {
				t.Fatalf("sync %d: instance %s waits: %s", n, i.ID, i.Why)
			}
		}
	}
}
