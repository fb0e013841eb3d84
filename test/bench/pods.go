package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// writers is how many requests the bare client has under way.
const writers = 64

// template of the pods of both contenders.
func (b *bench) template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "bench"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"type": "kwok"},
			Tolerations:  []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}},
			Containers:   []corev1.Container{{Name: "web", Image: oldImage}},
		},
	}
}

// bare makes the writes that n instances need, as fast as the API server takes
// them, with no controller's duties.
func (b *bench) bare(ctx context.Context, namespace string, n int) (result, error) {
	pods := b.core.CoreV1().Pods(namespace)
	each := func(f func(name string) error) error {
		var g errgroup.Group
		g.SetLimit(writers)
		for i := range n {
			g.Go(func() error { return f("bench-" + strconv.Itoa(i)) })
		}
		return g.Wait()
	}
	gate := func(name, status string) error {
		if !b.gate {
			return nil
		}
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q}]}}`, tappv1.GateInPlaceUpdate, status)
		_, err := pods.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	}

	var r result
	start := time.Now()
	err := each(func(name string) error {
		t := b.template()
		pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
		pod.Name = name
		pod.Labels[tappv1.LabelInstanceID] = "bare"
		if b.gate {
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
		}
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
		return gate(name, "True")
	})
	if err != nil {
		return r, fmt.Errorf("creating pods: %w", err)
	}
	if err := b.await(ctx, namespace, n, runs(oldImage)); err != nil {
		return r, err
	}
	r.create = time.Since(start)

	start = time.Now()
	if err := each(func(name string) error { return gate(name, "False") }); err != nil {
		return r, fmt.Errorf("closing gates: %w", err)
	}
	err = each(func(name string) error {
		patch := fmt.Sprintf(`{"spec":{"containers":[{"name":"web","image":%q}]}}`, newImage)
		_, err := pods.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return r, fmt.Errorf("changing images: %w", err)
	}
	if err := each(func(name string) error { return gate(name, "True") }); err != nil {
		return r, fmt.Errorf("opening gates: %w", err)
	}
	if err := b.await(ctx, namespace, n, runs(newImage)); err != nil {
		return r, err
	}
	r.update = time.Since(start)
	return r, nil
}

// runs says whether a pod is ready and its container runs the image.
func runs(image string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].Image != image {
			return false
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	}
}

// await returns when the namespace has exactly n pods for which ok holds, and no
// other.
func (b *bench) await(ctx context.Context, namespace string, n int, ok func(*corev1.Pod) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	good, seen := map[types.UID]bool{}, map[types.UID]bool{}
	done := make(chan struct{})
	finished := false
	note := func(obj any, gone bool) {
		if d, is := obj.(cache.DeletedFinalStateUnknown); is {
			obj = d.Obj
		}
		pod := obj.(*corev1.Pod)
		delete(good, pod.UID)
		delete(seen, pod.UID)
		if !gone {
			seen[pod.UID] = true
			if ok(pod) {
				good[pod.UID] = true
			}
		}
		if !finished && len(good) == n && len(seen) == n {
			finished = true
			close(done)
		}
	}
	lw := cache.NewListWatchFromClient(b.core.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: lw, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { note(obj, false) },
		UpdateFunc: func(_, obj any) { note(obj, false) },
		DeleteFunc: func(obj any) { note(obj, true) },
	}})
	go informer.RunWithContext(ctx)
	if n == 0 {
		// With nothing left there may be no event at all.
		cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
		list, err := b.core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && len(list.Items) == 0 {
			return nil
		}
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d pods got there: %w", len(good), n, ctx.Err())
	}
}
