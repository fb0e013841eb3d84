package witness

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// step is a pod as a watch shows it: its name, and its conditions that are not true.
type step struct {
	pod string
	not []corev1.PodConditionType
}

func (s step) object(version int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: s.pod, UID: types.UID(s.pod), ResourceVersion: fmt.Sprint(version), Labels: map[string]string{tappv1.LabelInstanceID: s.pod},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "a", UID: "a"}, tappv1.GroupVersionKind())},
	}}
	pod.Spec.Containers = []corev1.Container{{Image: "demo:v1"}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
	for _, t := range []corev1.PodConditionType{tappv1.GateInPlaceUpdate, corev1.ContainersReady, corev1.PodReady} {
		is := corev1.ConditionTrue
		if slices.Contains(s.not, t) {
			is = corev1.ConditionFalse
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: is})
	}
	return pod
}

// TestOutOfService: with a budget of one, what counts as the second instance that is out
// of service, and what the fault says then.
func TestOutOfService(t *testing.T) {
	const gate, containers, ready = tappv1.GateInPlaceUpdate, corev1.ContainersReady, corev1.PodReady
	serves := func(pod string) step { return step{pod: pod} }
	not := func(pod string, types ...corev1.PodConditionType) step { return step{pod, types} }
	tests := []struct {
		name  string
		steps []step // after both pods are in service, and a-0 is drained
		want  string
	}{
		{"the second one is drained", []step{not("a-1", gate, ready)},
			"pod a-1 at 4: S2: 2 instances are out of service; the budget allows 1: a-0 at 3 with demo:v1, tkestack.io/InPlaceUpdate=False, Ready=False; a-1 at 4 with demo:v1, tkestack.io/InPlaceUpdate=False, Ready=False"},
		{"the containers of the second one fail", []step{not("a-1", containers, ready)},
			"pod a-1 at 4: S2: 2 instances are out of service; the budget allows 1: a-0 at 3 with demo:v1, tkestack.io/InPlaceUpdate=False, Ready=False; a-1 at 4 with demo:v1, ContainersReady=False, Ready=False"},
		{"its gate is open, and its kubelet has not made it ready yet", []step{not("a-0", ready), not("a-1", gate, ready)},
			"pod a-1 at 5: S2: 2 instances are out of service; the budget allows 1: a-0 at 4 with demo:v1, Ready=False; a-1 at 5 with demo:v1, tkestack.io/InPlaceUpdate=False, Ready=False"},
		{"the first one is back before", []step{not("a-0", ready), serves("a-0"), not("a-1", gate, ready)}, ""},
		{"the node controller takes the node of the second one for silent", []step{not("a-1", ready)}, ""},
		{"it is drained after that", []step{not("a-1", ready), not("a-1", gate, ready)},
			"pod a-1 at 5: S2: 2 instances are out of service; the budget allows 1: a-0 at 3 with demo:v1, tkestack.io/InPlaceUpdate=False, Ready=False; a-1 at 5 with demo:v1, tkestack.io/InPlaceUpdate=False, Ready=False"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWitness(nil)
			w.budget = 1
			for n, s := range append([]step{serves("a-0"), serves("a-1"), not("a-0", gate, ready)}, test.steps...) {
				w.see(watch.Modified, s.object(n+1))
			}
			if got := strings.Join(w.faults, "\n"); got != test.want {
				t.Errorf("faults\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
