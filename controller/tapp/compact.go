package tapp

import (
	"reflect"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// trim drops what nobody here reads from an object that is about to be cached:
// the bookkeeping of server-side and client-side apply, often half of the bytes.
func trim(object any) (any, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return object, nil // a tombstone
	}
	m.SetManagedFields(nil)
	delete(m.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	return object, nil
}

// withoutData is trim for revisions: what they hold is for people who roll back.
func withoutData(object any) (any, error) {
	if r, ok := object.(*appsv1.ControllerRevision); ok {
		r.Data = runtime.RawExtension{}
	}
	return trim(object)
}

// mostModels bounds what a compactor remembers.
const mostModels = 1024

// compactor makes the pods of a TApp share what they have in common: most of
// their spec, of which the cache would hold 10,000 equal copies otherwise. That
// is safe because nobody writes to what is cached.
type compactor struct {
	mu     sync.Mutex
	models map[types.UID]*corev1.Pod // by owner: the pod that was seen last
}

func newCompactor() *compactor { return &compactor{models: map[types.UID]*corev1.Pod{}} }

// compact is trim for pods.
func (c *compactor) compact(object any) (any, error) {
	if _, err := trim(object); err != nil {
		return nil, err
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.Status.Conditions = slices.Clone(pod.Status.Conditions) // decoding leaves room for more
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return pod, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if model := c.models[owner.UID]; model != nil {
		shareWith(pod, model)
	} else if len(c.models) >= mostModels {
		clear(c.models)
	}
	c.models[owner.UID] = pod
	return pod, nil
}

func shareWith(pod, model *corev1.Pod) {
	share(&pod.OwnerReferences, model.OwnerReferences)
	share(&pod.Annotations, model.Annotations)
	share(&pod.Spec.Tolerations, model.Spec.Tolerations)
	share(&pod.Spec.NodeSelector, model.Spec.NodeSelector)
	share(&pod.Spec.Affinity, model.Spec.Affinity)
	share(&pod.Spec.SecurityContext, model.Spec.SecurityContext)
	share(&pod.Spec.ReadinessGates, model.Spec.ReadinessGates)
	share(&pod.Spec.TopologySpreadConstraints, model.Spec.TopologySpreadConstraints)
	for i := range min(len(pod.Spec.Volumes), len(model.Spec.Volumes)) {
		// The names differ: the API server makes some of them up.
		share(&pod.Spec.Volumes[i].VolumeSource, model.Spec.Volumes[i].VolumeSource)
	}
	shareContainers(pod.Spec.InitContainers, model.Spec.InitContainers)
	shareContainers(pod.Spec.Containers, model.Spec.Containers)
}

func shareContainers(containers, models []corev1.Container) {
	for i := range min(len(containers), len(models)) {
		c, m := &containers[i], &models[i]
		share(&c.Command, m.Command)
		share(&c.Args, m.Args)
		share(&c.Ports, m.Ports)
		share(&c.EnvFrom, m.EnvFrom)
		share(&c.Env, m.Env)
		share(&c.Resources, m.Resources)
		share(&c.LivenessProbe, m.LivenessProbe)
		share(&c.ReadinessProbe, m.ReadinessProbe)
		share(&c.StartupProbe, m.StartupProbe)
		share(&c.Lifecycle, m.Lifecycle)
		share(&c.SecurityContext, m.SecurityContext)
	}
}

// share replaces a field by the model's if they are equal.
func share[T any](field *T, model T) {
	if reflect.DeepEqual(*field, model) {
		*field = model
	}
}
