package cache

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestTrim(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "a-1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "kept": "yes"},
	}}
	got, err := Trim(pod)
	if err != nil || got != pod || pod.ManagedFields != nil || !maps.Equal(pod.Annotations, map[string]string{"kept": "yes"}) {
		t.Errorf("got %v and error %v", got, err)
	}
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "ns/a-1"}
	if got, err := Trim(tombstone); err != nil || got != tombstone {
		t.Errorf("a tombstone is left alone: got %v and error %v", got, err)
	}
}

// TestTrimOnce: an object is trimmed and written to the first time alone, whatever it had.
func TestTrimOnce(t *testing.T) {
	for name, fields := range map[string][]metav1.ManagedFieldsEntry{"fields": {{Manager: "kubectl"}}, "none": nil} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: fields, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}}}
		if !TrimOnce(pod) || len(pod.ManagedFields)+len(pod.Annotations) > 0 {
			t.Errorf("%s: the first time comes to %v", name, pod)
		}
		pod.Annotations[corev1.LastAppliedConfigAnnotation] = "another object's by now"
		if TrimOnce(pod) || len(pod.Annotations) == 0 {
			t.Errorf("%s: the second time comes to %v", name, pod)
		}
	}
}

func TestByLabel(t *testing.T) {
	index := ByLabel("of")
	pod := func(labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: labels}}
	}
	for name, c := range map[string]struct {
		object any
		want   string
		err    bool
	}{
		"with the label":    {pod(map[string]string{"of": "web", "app": "x"}), "[ns/web]", false},
		"without the label": {pod(nil), "[ns/]", false},
		"no object":         {"web", "[]", true},
	} {
		if got, err := index(c.object); fmt.Sprint(got) != c.want || (err != nil) != c.err {
			t.Errorf("%s: got %v and error %v, want %s", name, got, err, c.want)
		}
	}
}
