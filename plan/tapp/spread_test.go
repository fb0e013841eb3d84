package tapp

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/spread"
)

// spreads are all that an operator and a cluster can be.
func spreads() map[string]spread.Policy {
	out := map[string]spread.Policy{}
	for _, of := range []tappv1.DefaultTopologySpread{"", tappv1.NoTopologySpread, tappv1.SystemTopologySpread} {
		for _, zones := range []bool{false, true} {
			out[fmt.Sprintf("%q, zones %t", of, zones)] = spread.Policy{Default: of, Zones: zones}
		}
	}
	return out
}

func spreadTApp() *tappv1.TApp {
	t := &tappv1.TApp{Spec: tappv1.TAppSpec{Replicas: new(int32(2)), Template: templateOf("web:1")}}
	t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	t.Namespace, t.Name, t.UID, t.Generation = "shop", "web", "tapp", 1
	return t
}

// madePods are the pods that a plan makes, running and Ready.
func madePods(t *testing.T, tapp *tappv1.TApp, policy spread.Policy) (out []*corev1.Pod) {
	t.Helper()
	for _, a := range Compute(Input{TApp: tapp, Policy: Policy{Spread: policy}}).Actions {
		pod := a.Pod.DeepCopy()
		pod.UID, pod.Spec.NodeName, pod.Status.Phase = types.UID(pod.Name), "node-1", corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionTrue}}
		out = append(out, pod)
	}
	if len(out) != 2 {
		t.Fatalf("%d pods are made", len(out))
	}
	return out
}

// TestSpreadPods: each new pod has the constraints, shares them with the others, and the
// template has none.
func TestSpreadPods(t *testing.T) {
	tapp := spreadTApp()
	pods := madePods(t, tapp, spread.Policy{Default: tappv1.SystemTopologySpread, Zones: true})
	plain := madePods(t, tapp, spread.Policy{})
	for i, pod := range pods {
		if c := pod.Spec.TopologySpreadConstraints; len(c) != 2 || c[0].TopologyKey != corev1.LabelHostname || c[1].TopologyKey != corev1.LabelTopologyZone || c[0].LabelSelector.MatchLabels["app"] != "web" {
			t.Errorf("%s: %+v", pod.Name, c)
		}
		if !maps.Equal(pod.Labels, plain[i].Labels) || !maps.Equal(pod.Annotations, plain[i].Annotations) {
			t.Errorf("%s: labels or annotations depend on it", pod.Name)
		}
	}
	if len(tapp.Spec.Template.Spec.TopologySpreadConstraints) > 0 {
		t.Error("the template has changed")
	}
}

// TestSpreadIsNoChange: pods that were made under one setting stay as they are under each
// other one, whether they carry our hashes, or those of nobody and are compared by field. A
// StatefulSet's pods, which have no constraints, are taken over as they are.
func TestSpreadIsNoChange(t *testing.T) {
	for from, was := range spreads() {
		for to, is := range spreads() {
			for _, asks := range []tappv1.DefaultTopologySpread{"", tappv1.NoTopologySpread, tappv1.SystemTopologySpread} {
				for _, foreign := range []bool{false, true} {
					tapp := spreadTApp()
					pods := madePods(t, tapp, was)
					if foreign {
						for _, pod := range pods {
							delete(pod.Labels, tappv1.LabelTemplateHash)
							delete(pod.Labels, tappv1.LabelUniqHash)
							pod.Annotations = nil
						}
					}
					tapp.Spec.DefaultTopologySpread = asks
					for _, a := range Compute(Input{TApp: tapp, Pods: pods, Policy: Policy{Spread: is}}).Actions {
						if !foreign || a.Op != OpRelabel {
							t.Errorf("from %s to %s, asked for %q, foreign %t: %s of %s: %s", from, to, asks, foreign, a.Op, a.ID, a.Why)
						}
					}
					for _, change := range Preview(Input{TApp: tapp, Pods: pods, Policy: Policy{Spread: is}}) {
						if !foreign || change.Effect != effect.Relabel {
							t.Errorf("from %s to %s, asked for %q, foreign %t: %s", from, to, asks, foreign, change)
						}
					}
				}
			}
		}
	}
}

// TestSpreadOfTheTemplate: constraints that the template gets afterwards are a change of it.
func TestSpreadOfTheTemplate(t *testing.T) {
	tapp := spreadTApp()
	policy := spread.Policy{Default: tappv1.SystemTopologySpread}
	pods := madePods(t, tapp, policy)
	tapp.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelHostname, MaxSkew: 3,
		WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	changes := Preview(Input{TApp: tapp, Pods: pods, Policy: Policy{Spread: policy}})
	if len(changes) != 1 || changes[0].Effect != effect.Recreate || len(changes[0].IDs) != 2 {
		t.Errorf("got %v", changes)
	}
}
