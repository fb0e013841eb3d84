package plan

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// resize gives the pod the resources of another, as the subresource does, and has
// the kubelet say something of it.
func (p *podStory) resize(pod, to *corev1.Pod) {
	for _, key := range []string{tappv1.LabelTemplateHash, tappv1.LabelUniqHash} {
		pod.Labels[key] = to.Labels[key]
	}
	setAnnotation(pod, tappv1.AnnotationResized, "true")
	switch p.Resize {
	case "refused":
		setAnnotation(pod, tappv1.AnnotationResized, refusedPrefix+to.Labels[tappv1.LabelTemplateHash])
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

func TestQOS(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, value := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if value != "" {
				out[name] = resource.MustParse(value)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		containers []corev1.ResourceRequirements
		want       corev1.PodQOSClass
	}{
		"nothing":           {[]corev1.ResourceRequirements{{}, {}}, corev1.PodQOSBestEffort},
		"zero":              {[]corev1.ResourceRequirements{{Requests: list("0", "")}}, corev1.PodQOSBestEffort},
		"a request":         {[]corev1.ResourceRequirements{{Requests: list("1", "")}}, corev1.PodQOSBurstable},
		"limits":            {[]corev1.ResourceRequirements{{Limits: list("1", "1Gi")}}, corev1.PodQOSGuaranteed},
		"limits = requests": {[]corev1.ResourceRequirements{{Requests: list("1000m", "1Gi"), Limits: list("1", "1024Mi")}}, corev1.PodQOSGuaranteed},
		"lower requests":    {[]corev1.ResourceRequirements{{Requests: list("1", "1Gi"), Limits: list("2", "1Gi")}}, corev1.PodQOSBurstable},
		"one limit":         {[]corev1.ResourceRequirements{{Limits: list("1", "")}}, corev1.PodQOSBurstable},
		"one without":       {[]corev1.ResourceRequirements{{Limits: list("1", "1Gi")}, {}}, corev1.PodQOSBurstable},
	} {
		spec := &corev1.PodSpec{}
		for _, r := range c.containers {
			spec.Containers = append(spec.Containers, corev1.Container{Resources: r})
		}
		if got := qosOf(spec); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}
