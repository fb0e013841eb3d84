package apiserver

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Finalizers of the garbage collector.
const (
	Foreground = metav1.FinalizerDeleteDependents
	Orphan     = metav1.FinalizerOrphanDependents
)

// Remove is a DELETE. It returns the object while that is still there.
func (s *Server) Remove(resource, key string, o metav1.DeleteOptions, who Actor) (Object, error) {
	old := s.Get(resource, key)
	if old == nil {
		return nil, s.notFound(resource, key)
	}
	var p preconditions
	if o.Preconditions != nil {
		p.uid, p.version = string(ptr.Deref(o.Preconditions.UID, "")), ptr.Deref(o.Preconditions.ResourceVersion, "")
	}
	if err := s.check(resource, old, p); err != nil {
		return nil, err
	}
	grace := int64(0)
	if of := s.kinds[resource].Grace; of != nil {
		grace = of(old, o)
	}
	if old.GetDeletionTimestamp() != nil && ptr.Deref(old.GetDeletionGracePeriodSeconds(), 0) == 0 {
		grace = 0 // what an earlier request began is finished
	}
	now := Clone(old)
	if f := finalizerOf(o); f != "" && !slices.Contains(now.GetFinalizers(), f) && old.GetDeletionTimestamp() == nil {
		now.SetFinalizers(append(now.GetFinalizers(), f))
	}
	if grace == 0 && len(now.GetFinalizers()) == 0 && !(s.BreaksOff && resource == Pods) {
		s.commit(resource, old, nil, who)
		return nil, nil
	}
	if old.GetDeletionTimestamp() != nil {
		if left := ptr.Deref(old.GetDeletionGracePeriodSeconds(), 0); grace >= left {
			return old, nil // it is under way
		}
	}
	if old.GetDeletionTimestamp() == nil && now.GetGeneration() > 0 {
		now.SetGeneration(now.GetGeneration() + 1)
	}
	until := metav1.NewTime(s.Second().Add(time.Duration(grace) * time.Second))
	now.SetDeletionTimestamp(&until)
	now.SetDeletionGracePeriodSeconds(&grace)
	return s.commit(resource, old, now, who), nil
}

func finalizerOf(o metav1.DeleteOptions) string {
	switch ptr.Deref(o.PropagationPolicy, metav1.DeletePropagationBackground) {
	case metav1.DeletePropagationForeground:
		return Foreground
	case metav1.DeletePropagationOrphan:
		return Orphan
	}
	return ""
}

// DeleteNow is a deletion by force.
func DeleteNow() metav1.DeleteOptions { return metav1.DeleteOptions{GracePeriodSeconds: new(int64)} }
