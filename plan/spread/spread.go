// Package spread gives new pods the constraints by which kube-scheduler spreads those of a
// StatefulSet. Its own defaults know Services, ReplicationControllers, ReplicaSets and
// StatefulSets alone, so that pods of another owner without a Service clump.
//
//	key                           | maxSkew | pods get it
//	------------------------------+---------+--------------------------------------
//	kubernetes.io/hostname        | 3       | always
//	topology.kubernetes.io/zone   | 5       | while every node has the label
//
// Both only wish (ScheduleAnyway). The zone depends on the nodes because kube-scheduler
// scores no node that lacks a key of a pod's own constraints, which it does with its defaults.
//
// No template has them: hashes, comparisons and running pods know nothing of them.
package spread

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// The skews are those of kube-scheduler's default constraints.
const (
	hostSkew = 3
	zoneSkew = 5
)

// Policy is what the operator decided, and what is known of the nodes. The zero value
// spreads nothing.
type Policy struct {
	// Default holds for TApps that say nothing.
	Default tappv1.DefaultTopologySpread
	// Zones: every node has a zone.
	Zones bool
}

// Constraints that new pods of a TApp get; nil: none. The TApp has its defaults. Pods may
// share the result.
func (p Policy) Constraints(t *tappv1.TAppSpec) []corev1.TopologySpreadConstraint {
	asked := t.DefaultTopologySpread
	if asked == "" {
		asked = p.Default
	}
	selector := selectorOf(t)
	if asked != tappv1.SystemTopologySpread || selector == nil {
		return nil
	}
	out := []corev1.TopologySpreadConstraint{constraint(corev1.LabelHostname, hostSkew, selector)}
	if p.Zones {
		out = append(out, constraint(corev1.LabelTopologyZone, zoneSkew, selector))
	}
	return out
}

func constraint(key string, skew int32, selector *metav1.LabelSelector) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector}
}

// selectorOf the TApp without hashes, which differ between instances; nil: it selects nothing
// that can be said.
func selectorOf(t *tappv1.TAppSpec) *metav1.LabelSelector {
	if t.Selector == nil {
		return nil
	}
	out := &metav1.LabelSelector{MatchLabels: tappv1.WithoutHashLabels(t.Selector.MatchLabels)}
	out.MatchExpressions = slices.DeleteFunc(slices.Clone(t.Selector.MatchExpressions), func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == tappv1.LabelTemplateHash || r.Key == tappv1.LabelUniqHash
	})
	if len(out.MatchLabels)+len(out.MatchExpressions) == 0 {
		return nil
	}
	return out
}

// Add the constraints to a new pod, whose spec may share what it has with others. A template
// that spreads its pods, names their node or has another scheduler is left alone.
func Add(pod *corev1.PodSpec, constraints []corev1.TopologySpreadConstraint) {
	ours := pod.SchedulerName == "" || pod.SchedulerName == corev1.DefaultSchedulerName
	if len(pod.TopologySpreadConstraints) == 0 && pod.NodeName == "" && ours {
		pod.TopologySpreadConstraints = constraints
	}
}
