package trial

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// AsksNoMore says whether a new pod asks a quota for no more than the one that goes gives
// back. Compared are the containers of the new pod's template, by name: what admission adds
// to pods it adds to both. What the template leaves out, defaults of the namespace fill in
// both.
func AsksNoMore(now, goes *corev1.PodSpec) bool {
	if now.PriorityClassName != "" && now.PriorityClassName != goes.PriorityClassName || (now.ActiveDeadlineSeconds == nil) != (goes.ActiveDeadlineSeconds == nil) {
		return false // another quota may hold for it
	}
	for _, of := range [2]func(*corev1.ResourceRequirements) corev1.ResourceList{requests, limits} {
		wants, gives := total(now, now, of), total(now, goes, of)
		for name, want := range wants {
			if want.Cmp(gives[name]) > 0 {
				return false
			}
		}
	}
	return true
}

// total of the resources of a pod's containers that have the names of a template's. Init
// containers run before the others, sidecars with them: their sum is as good a measure of
// more or less.
func total(named, spec *corev1.PodSpec, of func(*corev1.ResourceRequirements) corev1.ResourceList) map[corev1.ResourceName]resource.Quantity {
	out := map[corev1.ResourceName]resource.Quantity{}
	add := func(list corev1.ResourceList) {
		for name, quantity := range list {
			sum := out[name]
			sum.Add(quantity)
			out[name] = sum
		}
	}
	for _, lists := range [2][2][]corev1.Container{{named.InitContainers, spec.InitContainers}, {named.Containers, spec.Containers}} {
		names := map[string]bool{}
		for i := range lists[0] {
			names[lists[0][i].Name] = true
		}
		for i := range lists[1] {
			if names[lists[1][i].Name] {
				add(of(&lists[1][i].Resources))
			}
		}
	}
	if spec.Resources != nil {
		add(of(spec.Resources))
	}
	return out
}

// requests are the limits where they are left out, as the API server has it.
func requests(r *corev1.ResourceRequirements) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range r.Limits {
		out[name] = quantity
	}
	for name, quantity := range r.Requests {
		out[name] = quantity
	}
	return out
}

func limits(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }
