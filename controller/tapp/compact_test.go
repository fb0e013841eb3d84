package tapp

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func TestTrim(t *testing.T) {
	pod := somePod("a-1", "u", "1")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	pod.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "kept": "yes"}
	if _, err := trim(pod); err != nil || pod.ManagedFields != nil || len(pod.Annotations) != 1 {
		t.Errorf("got %v and error %v", pod.ObjectMeta, err)
	}
	if _, err := trim(cache.DeletedFinalStateUnknown{}); err != nil {
		t.Errorf("a tombstone is left alone: %v", err)
	}
}

func fullPod(name, memory string) *corev1.Pod {
	pod := ownedBy(somePod(name, "u-"+name, "1"), "TApp", "a", "uid-a")
	pod.Spec = corev1.PodSpec{
		Tolerations:     []corev1.Toleration{{Key: "k", TolerationSeconds: ptr.To(int64(300))}},
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(7))},
		Volumes:         []corev1.Volume{{Name: "token-" + name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}},
		Containers: []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "E", Value: "v"}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}}},
	}
	return pod
}

// TestCompact: pods share what is equal, and say what they said before.
func TestCompact(t *testing.T) {
	c := newCompactor()
	pods := []*corev1.Pod{fullPod("a-0", "1Gi"), fullPod("a-1", "1Gi"), fullPod("a-2", "2Gi")}
	for _, p := range pods {
		before := p.DeepCopy()
		if _, err := c.compact(p); err != nil || !reflect.DeepEqual(p, before) {
			t.Errorf("got %+v and error %v, want it to say what it said", p, err)
		}
	}
	a, b, other := &pods[0].Spec, &pods[1].Spec, &pods[2].Spec
	if &a.Tolerations[0] != &b.Tolerations[0] || a.SecurityContext != b.SecurityContext || a.Volumes[0].Projected != b.Volumes[0].Projected ||
		&a.Containers[0].Env[0] != &b.Containers[0].Env[0] {
		t.Error("equal parts are not shared")
	}
	if b.Volumes[0].Name != "token-a-1" || other.Containers[0].Resources.Limits.Memory().String() != "2Gi" {
		t.Error("what differs is lost")
	}
	loner := somePod("x-1", "u", "1")
	if _, err := c.compact(loner); err != nil || len(c.models) != 1 {
		t.Errorf("a pod without an owner: %v, %d models", err, len(c.models))
	}
}

func TestCompactorIsBounded(t *testing.T) {
	c := newCompactor()
	for n := range 3 * mostModels {
		pod := ownedBy(somePod("a-1", "u", "1"), "TApp", "a", string(rune('A'+n)))
		if _, err := c.compact(pod); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.models) > mostModels {
		t.Errorf("%d models", len(c.models))
	}
}
