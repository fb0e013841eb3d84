package storage

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Growth is what to write for a claim that asks for more than it has. Nil fields stay as they are.
type Growth struct {
	Capacity *resource.Quantity // of the volume, to be written first
	Status   *corev1.PersistentVolumeClaimStatus
	Problem  error // why the claim cannot grow
}

// Grow decides about one claim and its volume, as the resizer of a CSI driver does. A directory has no size, so that to
// grow is only to say so.
func Grow(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, class *storagev1.StorageClass, now metav1.Time) Growth {
	if claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil || claim.Annotations[HoldGrowth] == "true" {
		return Growth{}
	}
	want, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	var g Growth
	status := claim.Status.DeepCopy()
	switch {
	case want.Cmp(has) <= 0:
		cease(status)
	default:
		if g.Problem = feasible(want, class); g.Problem != nil {
			refuse(status, want, g.Problem, now)
			break
		}
		cease(status)
		status.Capacity[corev1.ResourceStorage] = want
		if size := volume.Spec.Capacity[corev1.ResourceStorage]; size.Cmp(want) < 0 {
			g.Capacity = &want
		}
	}
	if !equality.Semantic.DeepEqual(status, &claim.Status) {
		g.Status = status
	}
	return g
}

// cease removes what tells of an attempt to grow.
func cease(s *corev1.PersistentVolumeClaimStatus) {
	delete(s.AllocatedResources, corev1.ResourceStorage)
	delete(s.AllocatedResourceStatuses, corev1.ResourceStorage)
	kept := s.Conditions[:0]
	for _, c := range s.Conditions {
		switch c.Type {
		case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending, corev1.PersistentVolumeClaimControllerResizeError:
		default:
			kept = append(kept, c)
		}
	}
	s.Conditions = kept
}

// refuse tells that the claim will never have the size it asks for.
func refuse(s *corev1.PersistentVolumeClaimStatus, want resource.Quantity, problem error, now metav1.Time) {
	for _, c := range s.Conditions {
		if c.Type == corev1.PersistentVolumeClaimControllerResizeError && c.Message == problem.Error() {
			now = c.LastTransitionTime
		}
	}
	cease(s)
	s.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: want}
	s.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
		corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible,
	}
	s.Conditions = append(s.Conditions, corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, LastTransitionTime: now,
		Reason: "Infeasible", Message: problem.Error(),
	})
}
