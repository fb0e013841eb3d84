package inplace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

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
