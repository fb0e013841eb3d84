package template

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RequireNode adds a required affinity to the node. The terms of a node selector
// are alternatives, so that each of them gets the requirement.
func RequireNode(spec *corev1.PodSpec, node string) {
	if spec.Affinity = spec.Affinity.DeepCopy(); spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	if spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	s := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(s.NodeSelectorTerms) == 0 {
		s.NodeSelectorTerms = make([]corev1.NodeSelectorTerm, 1)
	}
	for i := range s.NodeSelectorTerms {
		term := &s.NodeSelectorTerms[i]
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		})
	}
}

// RequiresNode says whether a pod may run on one node only, by the node's name, as
// RequireNode has it.
func RequiresNode(spec *corev1.PodSpec) bool {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn {
				return true
			}
		}
	}
	return false
}
