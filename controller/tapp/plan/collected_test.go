package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes calls a pod failed and deletes it, when its node is gone. What was broken
// off in between, while a node of that name came back, has to be finished: the
// instance would have a pod that neither runs nor goes. Found by simulation.
func TestCollectionIsFinished(t *testing.T) {
	in := story(2, podStory{IDs: "0-1", Collected: true, Phase: corev1.PodFailed}).input(t)
	wantOps(t, Compute(in))
	if p := Compute(in); p.Wait == 0 || p.Wait > collectorMost {
		t.Errorf("the next look is after %s", p.Wait)
	}
	for i := range in.Pods[1].Status.Conditions {
		in.Pods[1].Status.Conditions[i].LastTransitionTime = metav1.NewTime(now.Add(-collectorMost - time.Second))
	}
	wantOps(t, Compute(in), "Delete 1")
	in.TApp.Spec.Replicas = new(int32)
	wantOps(t, Compute(in), "Delete 1")
	in.TApp.DeletionTimestamp = &metav1.Time{Time: now}
	wantOps(t, Compute(in))
}
