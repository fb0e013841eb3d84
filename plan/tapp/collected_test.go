package tapp

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ending"
)

// Kubernetes calls a pod failed and deletes it, when its node is gone. What was broken
// off in between, while a node of that name came back, has to be finished: the
// instance would have a pod that neither runs nor goes. Found by simulation.
func TestCollectionIsFinished(t *testing.T) {
	in := story(2, podStory{IDs: "0-1", Collected: true, Phase: corev1.PodFailed}).input(t)
	wantOps(t, Compute(in))
	if p := Compute(in); p.Wait == 0 || p.Wait > ending.CollectorTimeout {
		t.Errorf("the next look is after %s", p.Wait)
	}
	for i := range in.Pods[1].Status.Conditions {
		in.Pods[1].Status.Conditions[i].LastTransitionTime = metav1.NewTime(now.Add(-ending.CollectorTimeout - time.Second))
	}
	wantOps(t, Compute(in), "Delete 1")
	in.TApp.Spec.Replicas = new(int32)
	wantOps(t, Compute(in), "Delete 1")
	in.TApp.DeletionTimestamp = &metav1.Time{Time: now}
	wantOps(t, Compute(in))
}

// The API server stamps a pod that has no grace period, and then removes it. What it left
// behind in between has to be deleted once more: a kubelet that is gone does not.
func TestRemovalIsFinished(t *testing.T) {
	for name, c := range map[string]struct {
		pod  podStory
		edit func(*corev1.Pod)
		want []string
	}{
		"with a node":           {podStory{Dying: "15s ago"}, nil, []string{"Delete 1"}},
		"not bound yet":         {podStory{Dying: "15s ago", Phase: corev1.PodPending}, nil, []string{"Delete 1"}},
		"for less than 15s":     {podStory{Dying: "14s ago"}, nil, nil},
		"with a grace period":   {podStory{Dying: "1m ago"}, func(p *corev1.Pod) { *p.DeletionGracePeriodSeconds = 1 }, nil},
		"its finalizer is next": {podStory{Dying: "1m ago"}, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.pod.IDs, c.pod.Left = "0-1", true
			in := story(2, c.pod).input(t)
			in.Pods = in.Pods[1:]
			in.TApp.Spec.Replicas = new(int32(2))
			in.TApp.Spec.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceKilled}
			if c.edit != nil {
				c.edit(in.Pods[0])
			}
			p := Compute(in)
			wantOps(t, p, c.want...)
			if len(c.want) == 0 && (p.Wait <= 0 || p.Wait > ending.RemovalTimeout) {
				t.Errorf("the next look is after %s", p.Wait)
			}
		})
	}
}
