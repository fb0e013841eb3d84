// Package revisions stores what rollouts remember, in ControllerRevisions: the record of the
// present one, and the histories that it goes by.
package revisions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// Store of one object's revisions.
type Store struct {
	Client appsv1client.ControllerRevisionsGetter
	// Guard is told of each write, by the name Cache of the cache that will show it.
	Guard *cache.Guard
	Cache string
	// Label has the UID of the object that a revision is of.
	Label string
}

// Keep what a rollout remembers, and return the revisions as they are then; those that are
// given are as they were. False: the record is another one by now, and its event is on the
// way.
func (s Store) Keep(ctx context.Context, k *podset.Keep, given []*appsv1.ControllerRevision) ([]*appsv1.ControllerRevision, bool, error) {
	out := slices.Clone(given)
	for _, h := range k.Histories {
		stored, err := s.create(ctx, h)
		if apierrors.IsAlreadyExists(err) { // an earlier leader stored the same
			stored, err = s.Client.ControllerRevisions(h.Namespace).Get(ctx, h.Name, metav1.GetOptions{})
		}
		if err != nil {
			return out, false, fmt.Errorf("storing revision %s: %w", h.Name, err)
		}
		s.Guard.Wrote(s.Cache, stored.ResourceVersion)
		out = append(out, stored)
	}
	stored, err := s.put(ctx, k.Record)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		klog.FromContext(ctx).V(3).Info("Came too late", "why", k.Why, "reason", err.Error())
		return out, false, nil
	case err != nil:
		return out, false, fmt.Errorf("storing the record of the rollout: %w", err)
	}
	s.Guard.Wrote(s.Cache, stored.ResourceVersion)
	klog.FromContext(ctx).V(3).Info("Stored the record of the rollout", "why", k.Why)
	out = slices.DeleteFunc(out, func(r *appsv1.ControllerRevision) bool { return r.Name == stored.Name })
	return append(out, stored), true, nil
}

// create a revision. One of an object that had the name before makes room for it: on a
// cluster without a garbage collector it may be left from there.
func (s Store) create(ctx context.Context, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	client, options := s.Client.ControllerRevisions(r.Namespace), metav1.CreateOptions{FieldManager: v1beta1.Component}
	stored, err := client.Create(ctx, r, options)
	if !apierrors.IsAlreadyExists(err) {
		return stored, err
	}
	found, getErr := client.Get(ctx, r.Name, metav1.GetOptions{})
	if getErr != nil {
		return nil, getErr
	}
	switch of := found.Labels[s.Label]; of {
	case r.Labels[s.Label]:
		return nil, err
	case "":
		return nil, fmt.Errorf("ControllerRevision %q is not of a rollout: delete it", r.Name)
	}
	gone := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.UID))}
	if err := client.Delete(ctx, r.Name, gone); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("deleting that of an object which is gone: %w", err)
	}
	return client.Create(ctx, r, options)
}

// put creates the record, or replaces the version of it that was seen.
func (s Store) put(ctx context.Context, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	if r.ResourceVersion == "" {
		return s.create(ctx, r)
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": r.UID, "resourceVersion": r.ResourceVersion, "annotations": r.Annotations,
	}})
	if err != nil {
		return nil, err
	}
	return s.Client.ControllerRevisions(r.Namespace).Patch(ctx, r.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: v1beta1.Component})
}

// Forget revisions that are kept no longer, and return the others of those that are given.
func (s Store) Forget(ctx context.Context, obsolete, given []*appsv1.ControllerRevision) ([]*appsv1.ControllerRevision, error) {
	for _, r := range obsolete {
		err := s.Client.ControllerRevisions(r.Namespace).Delete(ctx, r.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(r.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return given, fmt.Errorf("deleting revision %s: %w", r.Name, err)
		}
		s.Guard.Deleted(cache.Deletion{Store: s.Cache, Key: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, UID: r.UID})
	}
	return slices.DeleteFunc(slices.Clone(given), func(r *appsv1.ControllerRevision) bool { return slices.Contains(obsolete, r) }), nil
}
