//go:build cluster

package e2e

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// handmade returns a pod that is an instance of the TApp by name and labels, but
// was not made by TApp: it has no owner, no hashes and no gate.
func handmade(tapp *tappv1.TApp, id int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *tapp.Spec.Template.ObjectMeta.DeepCopy(), Spec: *tapp.Spec.Template.Spec.DeepCopy()}
	p.Name = fmt.Sprintf("%s-%d", tapp.Name, id)
	p.Labels = maps.Clone(p.Labels)
	p.Labels[tappv1.LabelInstanceID] = strconv.Itoa(id)
	return p
}

func createPod(t *testing.T, ns string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := suite.Kube.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create pod %s: %v", p.Name, err)
	}
	return created
}
