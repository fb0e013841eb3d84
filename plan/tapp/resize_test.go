package tapp

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// resize gives the pod the resources of another, as the subresource does, and has
// the kubelet say something of it.
func (p *podStory) resize(pod, to *corev1.Pod) {
	follows := template.RecordOf(pod).ChangedResources(pod, &corev1.PodTemplateSpec{Spec: to.Spec}).String()
	for _, key := range []string{tappv1.LabelTemplateHash, tappv1.LabelUniqHash} {
		pod.Labels[key] = to.Labels[key]
	}
	setAnnotation(pod, tappv1.AnnotationTemplateKeys, to.Annotations[tappv1.AnnotationTemplateKeys])
	setAnnotation(pod, tappv1.AnnotationResized, follows)
	switch p.Resize {
	case "refused":
		setAnnotation(pod, tappv1.AnnotationResized, "refused "+to.Labels[tappv1.LabelTemplateHash]+" "+follows)
		return
	case "not yet":
		return
	}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources = to.Spec.Containers[i].Resources
	}
	pod.Generation++
	if p.Resize == "unseen" {
		return
	}
	pod.Status.ObservedGeneration = pod.Generation
	c := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue}
	c.Reason, c.Message, _ = strings.Cut(p.Resize, ": ")
	switch c.Reason {
	case "":
		return
	case "progress":
		c.Type, c.Reason = corev1.PodResizeInProgress, ""
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}

// refuse is a node that cannot resize a pod, for now or for ever.
func (c *cluster) refuse(pod *corev1.Pod) {
	k := c.kubelets[pod.UID]
	k.refuses, k.at = "", pod.Generation
	if c.weather != nil {
		k.refuses = pick(c.t, "resize", "", "", corev1.PodReasonDeferred, corev1.PodReasonInfeasible)
	}
}

// reportResize has the status say what the node does about resources. What it put
// off comes to pass when all is calm.
func (c *cluster) reportResize(pod *corev1.Pod, k *kubelet) {
	if c.weather == nil && k.refuses == corev1.PodReasonDeferred {
		k.refuses = ""
	}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(x corev1.PodCondition) bool { return x.Type == corev1.PodResizePending })
	if k.refuses != "" && k.pod.Generation >= k.at {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: k.refuses, Message: "no room"})
	}
}
