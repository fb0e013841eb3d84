package contender

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podOf is a pod of a version, ready or not.
func podOf(name string, v version, ready corev1.ConditionStatus) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: template(v, "a").Spec}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: v.image()}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	return p
}

func TestPods(t *testing.T) {
	p := &pods{now: map[string]*corev1.Pod{}, waits: map[string][]waiter{}}
	first, second := version{}, version{images: 1}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.all(short, 1, runs(first)); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "0 of 1 pods got there: context deadline exceeded" {
		t.Errorf("nothing is there, but: %v", err)
	}
	if err := p.all(t.Context(), 0, isGone); err != nil {
		t.Error(err)
	}

	done := make(chan error)
	go func() { done <- p.all(t.Context(), 2, runs(second)) }()
	for _, pod := range []*corev1.Pod{
		podOf("a-0", first, corev1.ConditionTrue), podOf("a-1", second, corev1.ConditionTrue), podOf("a-2", second, corev1.ConditionTrue),
		podOf("a-0", second, corev1.ConditionFalse),
	} {
		p.changed(pod, false)
	}
	select {
	case err := <-done:
		t.Fatalf("there are three, and one is not ready, but it ended: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	p.changed(podOf("a-0", second, corev1.ConditionTrue), false)
	p.changed(podOf("a-1", second, corev1.ConditionTrue), true)
	if err := <-done; err != nil {
		t.Error(err)
	}

	go func() { done <- p.one(t.Context(), "a-2", isGone) }()
	p.changed(podOf("a-2", second, corev1.ConditionTrue), true)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
