package tapp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

const nodesPerSync = 200

// TestNodesInTurn: of more nodes than one sync reads, the next one reads the others.
func TestNodesInTurn(t *testing.T) {
	const nodes = nodesPerSync + 50
	s := &stub{answer: func(_, path, _ string) (int, any) {
		n := &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return 200, n
	}}
	app := someTApp("a")
	app.Spec.Replicas, app.Spec.ForceDeletePod = new(int32(nodes)), true
	v := &view{tapp: app}
	for id := range nodes {
		pod := somePod(fmt.Sprintf("a-%d", id), fmt.Sprintf("u%d", id), "1")
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(app, tappv1.GroupVersionKind())}
		pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
		pod.Spec.NodeName = fmt.Sprintf("node-%d", id)
		v.pods = append(v.pods, pod)
	}
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
