//go:build programs

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/devcluster/storage"
)

// resizer lets claims grow whose request was raised. The library that provisions does not.
type resizer struct {
	client   typedcorev1.CoreV1Interface
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	classes  storagelisters.StorageClassLister
	queue    workqueue.TypedRateLimitingInterface[string]
	recorder record.EventRecorder
}

func (r *resizer) handler() cache.ResourceEventHandler {
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			r.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }}
}

func (r *resizer) run(ctx context.Context) {
	context.AfterFunc(ctx, r.queue.ShutDown)
	for {
		key, quit := r.queue.Get()
		if quit {
			return
		}
		if err := r.sync(ctx, key); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to let a claim grow", "claim", key)
			r.queue.AddRateLimited(key)
		} else {
			r.queue.Forget(key)
		}
		r.queue.Done(key)
	}
}

// sync looks at one claim. What is not in the caches yet comes with a later event, or a retry.
func (r *resizer) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	claim, err := r.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) || err == nil && claim.Spec.VolumeName == "" {
		return nil
	}
	if err != nil {
		return err
	}
	volume, err := r.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	if volume.Annotations["pv.kubernetes.io/provisioned-by"] != storage.Provisioner {
		return nil
	}
	class, err := r.classes.Get(volume.Spec.StorageClassName)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return r.write(ctx, claim, storage.Grow(claim, volume, class, metav1.Now()))
}

func (r *resizer) write(ctx context.Context, claim *corev1.PersistentVolumeClaim, g storage.Growth) error {
	if g.Capacity != nil {
		patch := fmt.Appendf(nil, `{"spec":{"capacity":{"storage":%q}}}`, g.Capacity.String())
		if _, err := r.client.PersistentVolumes().Patch(ctx, claim.Spec.VolumeName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("raise the capacity of the volume: %w", err)
		}
	}
	if g.Status == nil {
		return nil
	}
	changed := claim.DeepCopy()
	changed.Status = *g.Status
	if _, err := r.client.PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the status of the claim: %w", err)
	}
	switch size := g.Status.Capacity[corev1.ResourceStorage]; {
	case g.Problem != nil:
		r.recorder.Event(claim, corev1.EventTypeWarning, "VolumeResizeFailed", g.Problem.Error())
	case size.Cmp(claim.Status.Capacity[corev1.ResourceStorage]) > 0:
		r.recorder.Event(claim, corev1.EventTypeNormal, "VolumeResizeSuccessful", "The claim has "+size.String())
	}
	return nil
}
