package v1

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"
)

// TestDefault: absence has a meaning, what is there stays, and twice is once.
func TestDefault(t *testing.T) {
	a := &App{}
	Default(a)
	if d, s := a.Spec.DeploymentTemplate, a.Spec.ServiceTemplate; *d.Replicas != 1 || s.Port != 8080 || s.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("got %+v", a.Spec)
	}
	rapid.Check(t, func(t *rapid.T) {
		a := &App{}
		if rapid.Bool().Draw(t, "replicas") {
			n := rapid.Int32().Draw(t, "n")
			a.Spec.DeploymentTemplate.Replicas = &n
		}
		a.Spec.DeploymentTemplate.Ports = rapid.SliceOf(rapid.Custom(func(t *rapid.T) corev1.ContainerPort {
			return corev1.ContainerPort{ContainerPort: rapid.Int32().Draw(t, "port"), Protocol: rapid.SampledFrom([]corev1.Protocol{"", "TCP", "UDP"}).Draw(t, "protocol")}
		})).Draw(t, "ports")
		a.Spec.ServiceTemplate.Port = rapid.Int32Range(0, 3).Draw(t, "service port")
		a.Spec.ServiceTemplate.Type = rapid.SampledFrom([]corev1.ServiceType{"", "NodePort"}).Draw(t, "type")
		was := a.DeepCopy()
		Default(a)
		if was.Spec.DeploymentTemplate.Replicas != nil && *a.Spec.DeploymentTemplate.Replicas != *was.Spec.DeploymentTemplate.Replicas ||
			was.Spec.ServiceTemplate.Port != 0 && a.Spec.ServiceTemplate.Port != was.Spec.ServiceTemplate.Port {
			t.Fatal("what was there was changed")
		}
		once := a.DeepCopy()
		if Default(a); !equality.Semantic.DeepEqual(a, once) {
			t.Fatal("it is not idempotent")
		}
	})
}
