package appset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
)

// keep stores what a rollout remembers. False: the record is another one by now, and its
// event is on the way.
func (c *Controller) keep(ctx context.Context, v *view, o *object, k *plan.Keep) (bool, error) {
	client := c.Apps.ControllerRevisions(v.key.Namespace)
	for _, h := range k.Histories {
		stored, err := c.create(ctx, h)
		if apierrors.IsAlreadyExists(err) { // an earlier leader stored the same
			stored, err = client.Get(ctx, h.Name, metav1.GetOptions{})
		}
		if err != nil {
			return false, fmt.Errorf("storing revision %s: %w", h.Name, err)
		}
		o.guard.Wrote(storeRevisions, stored.ResourceVersion)
		v.revisions = append(slices.Clone(v.revisions), stored)
	}
	stored, err := c.putRecord(ctx, k.Record)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		klog.FromContext(ctx).V(3).Info("Came too late", "why", k.Why, "reason", err.Error())
		return false, nil
	case err != nil:
		return false, fmt.Errorf("storing the record of the rollout: %w", err)
	}
	o.guard.Wrote(storeRevisions, stored.ResourceVersion)
	klog.FromContext(ctx).V(3).Info("Stored the record of the rollout", "why", k.Why)
	v.revisions = slices.DeleteFunc(slices.Clone(v.revisions), func(r *appsv1.ControllerRevision) bool { return r.Name == stored.Name })
	v.revisions = append(v.revisions, stored)
	return true, nil
}

// create a revision. One of an AppSet that had the name before makes room for it: on a
// hub without a garbage collector it may be left from there.
func (c *Controller) create(ctx context.Context, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	client, options := c.Apps.ControllerRevisions(r.Namespace), metav1.CreateOptions{FieldManager: v1beta1.Component}
	stored, err := client.Create(ctx, r, options)
	if !apierrors.IsAlreadyExists(err) {
		return stored, err
	}
	found, getErr := client.Get(ctx, r.Name, metav1.GetOptions{})
	if getErr != nil {
		return nil, getErr
	}
	switch of := found.Labels[v1beta1.LabelAppSetUID]; of {
	case r.Labels[v1beta1.LabelAppSetUID]:
		return nil, err
	case "":
		return nil, fmt.Errorf("ControllerRevision %q is not of an AppSet: delete it", r.Name)
	}
	gone := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.UID))}
	if err := client.Delete(ctx, r.Name, gone); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("deleting that of an AppSet which is gone: %w", err)
	}
	return client.Create(ctx, r, options)
}

// putRecord creates the record, or replaces the version of it that was seen.
func (c *Controller) putRecord(ctx context.Context, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	client := c.Apps.ControllerRevisions(r.Namespace)
	if r.ResourceVersion == "" {
		return c.create(ctx, r)
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": r.UID, "resourceVersion": r.ResourceVersion, "annotations": r.Annotations,
	}})
	if err != nil {
		return nil, err
	}
	return client.Patch(ctx, r.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: v1beta1.Component})
}

// forget revisions that are kept no longer.
func (c *Controller) forget(ctx context.Context, o *object, revisions []*appsv1.ControllerRevision) error {
	for _, r := range revisions {
		err := c.Apps.ControllerRevisions(r.Namespace).Delete(ctx, r.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(r.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting revision %s: %w", r.Name, err)
		}
		o.guard.Deleted(cache.Deletion{Store: storeRevisions, Key: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, UID: r.UID})
	}
	return nil
}

// revisionsOf an AppSet, as the cache has them.
func (c *Controller) revisionsOf(a *v1beta1.AppSet) []*appsv1.ControllerRevision {
	found, err := c.revisions.GetTypedIndexer().ByTypedIndex(byAppSet, a.Namespace+"/"+string(a.UID))
	if err != nil {
		return nil // there is the index
	}
	return found
}

// confirmationsOf an AppSet, in a fixed order.
func (c *Controller) confirmationsOf(a *v1beta1.AppSet) []*v1beta1.Confirmation {
	found, err := c.confirmations.GetTypedIndexer().ByTypedIndex(byAppSet, a.Namespace+"/"+a.Name)
	if err != nil {
		return nil // there is the index
	}
	return found
}

func indexByAppSetUID(object any) ([]string, error) {
	if r, ok := object.(*appsv1.ControllerRevision); ok {
		return []string{r.Namespace + "/" + r.Labels[v1beta1.LabelAppSetUID]}, nil
	}
	return nil, nil
}

func indexByAppSet(object any) ([]string, error) {
	if conf, ok := object.(*v1beta1.Confirmation); ok {
		return []string{conf.Namespace + "/" + conf.Spec.AppSet}, nil
	}
	return nil, nil
}
