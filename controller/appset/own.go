package appset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
)

// putForget writes an AppSet that forgets some clusters, or loses its finalizer. First it reads
// live that these clusters have no part: their caches may lack what an earlier leader wrote.
func (c *Controller) putForget(ctx context.Context, v *view, o *object, own *plan.Own) error {
	if !c.lookGone(ctx, v, o, own.Gone) {
		return nil
	}
	return c.putOwn(ctx, v, o, own)
}

// putOwn writes the AppSet's own metadata.
func (c *Controller) putOwn(ctx context.Context, v *view, o *object, own *plan.Own) error {
	if v.app.DeletionTimestamp != nil && !slices.Contains(own.Finalizers, v1beta1.Finalizer) {
		// A hub without a garbage collector would keep the revisions.
		if _, err := c.kept(o).Forget(ctx, c.revisionsOf(v.app), nil); err != nil {
			return err
		}
	}
	type metadata struct {
		UID             types.UID         `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Finalizers      []string          `json:"finalizers"`
		Annotations     map[string]string `json:"annotations"`
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata{
		UID: v.app.UID, ResourceVersion: v.app.ResourceVersion, Finalizers: own.Finalizers,
		Annotations: map[string]string{v1beta1.AnnotationClusters: own.Clusters},
	}})
	if err != nil {
		return err
	}
	stored, err := c.AppSets.AppSets(v.key.Namespace).Patch(ctx, v.key.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: v1beta1.Component})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), write.IsOtherUID(err):
		klog.FromContext(ctx).V(3).Info("Came too late", "why", own.Why, "reason", err.Error())
		v.app = nil // its event is on the way, or it is looked at again
		return nil
	case err != nil:
		return fmt.Errorf("writing the AppSet's finalizers: %w", err)
	}
	klog.FromContext(ctx).V(3).Info("Wrote finalizers and clusters", "why", own.Why, "clusters", own.Clusters)
	o.guard.Wrote(storeAppSets, stored.ResourceVersion)
	v.app = stored
	if v.app.DeletionTimestamp != nil && !slices.Contains(v.app.Finalizers, v1beta1.Finalizer) {
		v.app = nil
	}
	return nil
}

// lookGone reads live, and says whether none of the clusters has a part. A cluster that does
// not answer is not certain for the rest of this sync.
func (c *Controller) lookGone(ctx context.Context, v *view, o *object, clusters []string) bool {
	gone := true
	unseen := slices.DeleteFunc(slices.Clone(clusters), v.hasPart) // a part that is there is not ours: the plan has judged that
	for i, read := range c.readAll(ctx, v.key, unseen) {
		switch name := unseen[i]; {
		case read.err != nil:
			gone = false
			v.failed[name] = fmt.Errorf("cannot look whether it has a part: %w", read.err)
			v.markStale(name)
		case read.part != nil:
			gone = false
			o.see(name, read.part, c.Clock.Now())
			v.put(name, read.part)
		}
	}
	return gone
}
