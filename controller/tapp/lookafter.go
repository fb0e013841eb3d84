package tapp

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/write"
)

// lookAfter looks at a pod after a write of it failed that may have been done all the same.
// The next plan waits until the caches show as much, lest it count a pod as serving that was
// taken out of service, and take another one.
func (w *writer) lookAfter(ctx context.Context, pod *corev1.Pod, failed error) {
	if !write.MayBeDone(failed) {
		return
	}
	switch now, err := w.pods.Get(ctx, pod.Name, metav1.GetOptions{}); {
	case err == nil:
		w.guard.Wrote(storePods, now.ResourceVersion)
	case apierrors.IsNotFound(err):
		w.noteDeleted(pod, false)
	}
}

// noteDeleted has the next plan wait until the caches show the deletion of a pod.
func (w *writer) noteDeleted(pod *corev1.Pod, force bool) {
	w.guard.Deleted(cache.Deletion{Store: storePods, Key: types.NamespacedName{Namespace: w.tapp.Namespace, Name: pod.Name}, UID: pod.UID, Force: force})
}
