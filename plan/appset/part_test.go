package appset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestCompared: what was the same before makes nothing else the same.
func TestCompared(t *testing.T) {
	podSpec := func(image, cpu string) *v1beta1.PodSpec {
		limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return &v1beta1.PodSpec{Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "web", Image: image, Resources: corev1.ResourceRequirements{Limits: limits}}}}}}
	}
	one := podSpec("one", "1")
	c := &compared{}
	for i, step := range []struct {
		want, have *v1beta1.PodSpec
		same       bool
	}{
		{one, podSpec("two", "1"), false},
		{one, one, true},
		{one, podSpec("one", "1000m"), true},
		{one, podSpec("two", "1"), false},
		{podSpec("two", "1"), one, false},
		{podSpec("two", "1"), podSpec("two", "1"), true},
		{one, podSpec("one", "2"), false},
		{one, podSpec("one", "1"), true},
	} {
		if got := c.same(step.want, step.have); got != step.same {
			t.Errorf("step %d: the same: %v", i, got)
		}
	}
}
