package gen

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatefulSet is the StatefulSet web of namespace shop, with an edit; nil: as it is.
func StatefulSet(edit func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "set", ResourceVersion: "7",
		Annotations: map[string]string{"team": "shop", corev1.LastAppliedConfigAnnotation: "{}"}}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	if edit != nil {
		edit(set)
	}
	return set
}

// RolledOut is a StatefulSet of two pods that run what it says.
func RolledOut(edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	set := StatefulSet(func(s *appsv1.StatefulSet) {
		s.Generation, s.Status.ObservedGeneration, s.Status.UpdateRevision = 2, 2, "web-rev"
		s.Spec.Replicas = new(int32(2))
		s.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}
		s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	})
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	for _, edit := range edits {
		edit(set)
	}
	return set
}

// PodOfSet is a ready pod as the StatefulSet's controller makes it.
func PodOfSet(set *appsv1.StatefulSet, id int, edits ...func(*corev1.Pod)) *corev1.Pod {
	name := set.Name + "-" + strconv.Itoa(id)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: set.Namespace, UID: "uid-of-pod",
			Labels: map[string]string{"app": "web", appsv1.StatefulSetPodNameLabel: name, appsv1.ControllerRevisionHashLabelKey: set.Status.UpdateRevision,
				appsv1.PodIndexLabel: strconv.Itoa(id)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}},
		Spec: *set.Spec.Template.Spec.DeepCopy(),
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Image: "web:1", RestartCount: 2}}},
	}
	pod.Spec.Hostname = name
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}
