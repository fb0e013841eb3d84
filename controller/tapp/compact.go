package tapp

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"tkestack.io/tapp/plan/template"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/cache"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// withoutData is cache.Trim for revisions: what they hold is for people who roll back.
func withoutData(object any) (any, error) {
	if r, ok := object.(*appsv1.ControllerRevision); ok {
		r.Data = runtime.RawExtension{}
	}
	return cache.Trim(object)
}

// maxModels and maxWords bound what a compactor remembers.
const (
	maxModels     = 1024
	maxWords      = 4096
	maxWordLength = 256
)

// compactor makes the pods of a TApp share what they have in common: most of
// their spec, of which the cache would hold 10,000 equal copies otherwise. That
// is safe because nobody writes to what is cached.
type compactor struct {
	mu     sync.Mutex
	models map[modelKey]*corev1.Pod // the pod that was seen last
	words  map[string]string        // of which one copy is enough
}

// modelKey tells apart pods that hardly have the same spec: while an update goes
// on, those of the old template and those of the new one come in turns.
type modelKey struct {
	owner types.UID
	hash  string
}

func newCompactor() *compactor {
	return &compactor{models: map[modelKey]*corev1.Pod{}, words: map[string]string{}}
}

// compact is cache.Trim for pods, of which there are the most by far.
func (c *compactor) compact(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return cache.Trim(object)
	}
	if template.IsReduced(pod.ManagedFields) {
		return pod, nil // it is compact already
	}
	overwritten := template.Reduce(pod)
	if !cache.TrimOnce(pod) {
		return pod, nil
	}
	if overwritten != nil {
		pod.ManagedFields = overwritten
	}
	trimStatus(&pod.Status)
	if template.IsOurs(pod.Labels[tappv1.LabelTemplateHash]) {
		trimServiceAccount(&pod.Spec) // others are compared field by field
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shareWords(pod)
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return pod, nil
	}
	key := modelKey{owner.UID, pod.Labels[tappv1.LabelTemplateHash]}
	if model := c.models[key]; model != nil {
		shareWith(pod, model)
	} else if len(c.models) >= maxModels {
		clear(c.models)
	}
	c.models[key] = pod
	return pod, nil
}

// trimServiceAccount drops the volume that the API server adds for the token of a
// service account: its name is made up, so that no two pods had the same containers.
func trimServiceAccount(spec *corev1.PodSpec) {
	made := func(v corev1.Volume) bool {
		return strings.HasPrefix(v.Name, "kube-api-access-") && v.Projected != nil
	}
	i := slices.IndexFunc(spec.Volumes, made)
	if i < 0 {
		return
	}
	name := spec.Volumes[i].Name
	if spec.Volumes = slices.Delete(spec.Volumes, i, i+1); len(spec.Volumes) == 0 {
		spec.Volumes = nil
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			mounts := slices.DeleteFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
			if containers[i].VolumeMounts = mounts; len(mounts) == 0 {
				containers[i].VolumeMounts = nil
			}
		}
	}
}

// trimStatus drops what the planner does not read: addresses, what is mounted, how a
// container ended before, and the steps of a start that were taken. Of conditions it
// reads those that are about the whole pod, and of the others why they are not true.
func trimStatus(s *corev1.PodStatus) {
	s.HostIP, s.HostIPs, s.PodIP, s.PodIPs = "", nil, "", nil
	ready := slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	kept := s.Conditions[:0]
	for _, c := range s.Conditions {
		switch c.Type {
		case corev1.PodScheduled, corev1.PodInitialized, corev1.PodReadyToStartContainers:
			if c.Status == corev1.ConditionTrue {
				continue
			}
		case corev1.ContainersReady: // where the pod is not, it tells who called it so
			if c.Status == corev1.ConditionTrue && ready {
				continue
			}
		}
		kept = append(kept, c)
	}
	// A copy, because decoding leaves room for more.
	if s.Conditions = slices.Clone(kept); len(kept) == 0 {
		s.Conditions = nil
	}
	for _, containers := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range containers {
			containers[i].VolumeMounts = nil
			containers[i].LastTerminationState = corev1.ContainerState{}
		}
	}
}

// shareWords has the pods of all TApps share the words that many of them have.
func (c *compactor) shareWords(pod *corev1.Pod) {
	if len(c.words) > maxWords {
		clear(c.words)
	}
	c.word(&pod.Namespace)
	c.word(&pod.Spec.NodeName)
	labels := make(map[string]string, len(pod.Labels))
	for key, value := range pod.Labels {
		c.word(&key)
		if key != tappv1.LabelInstanceID && key != tappv1.LabelPodIndex {
			c.word(&value)
		}
		labels[key] = value
	}
	if index, ok := labels[tappv1.LabelPodIndex]; ok && index == labels[tappv1.LabelInstanceID] {
		labels[tappv1.LabelPodIndex] = labels[tappv1.LabelInstanceID]
	}
	if pod.Labels = labels; len(labels) == 0 {
		pod.Labels = nil
	}
	if len(pod.Annotations) > 0 {
		annotations := make(map[string]string, len(pod.Annotations))
		for key, value := range pod.Annotations {
			c.word(&key)
			if key != tappv1.AnnotationInPlaceState { // which is the pod's own
				c.word(&value)
			}
			annotations[key] = value
		}
		pod.Annotations = annotations
	}
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		c.word((*string)(&condition.Type))
		c.word((*string)(&condition.Status))
		c.word(&condition.Reason)
		c.word(&condition.Message)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c.word(&containers[i].Name)
			c.word(&containers[i].Image)
			c.word(&containers[i].TerminationMessagePath)
			for k := range containers[i].VolumeMounts {
				c.word(&containers[i].VolumeMounts[k].MountPath)
			}
		}
	}
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			c.word(&containers[i].Name)
			c.word(&containers[i].Image)
			c.word(&containers[i].ImageID)
		}
	}
}

// word has a string be the copy of it that was seen first. Long ones are rarely words
// that pods have in common.
func (c *compactor) word(s *string) {
	if len(*s) > maxWordLength {
		return
	}
	if known, ok := c.words[*s]; ok {
		*s = known
		return
	}
	c.words[*s] = *s
}

func shareWith(pod, model *corev1.Pod) {
	share(&pod.OwnerReferences, &model.OwnerReferences)
	share(&pod.Annotations, &model.Annotations)
	shareFields(&pod.Spec, &model.Spec)
	eachOf(pod.Status.InitContainerStatuses, model.Status.InitContainerStatuses, shareStatus)
	eachOf(pod.Status.ContainerStatuses, model.Status.ContainerStatuses, shareStatus)
	eachOf(pod.Spec.InitContainers, model.Spec.InitContainers, shareFields)
	eachOf(pod.Spec.Containers, model.Spec.Containers, shareFields)
	eachOf(pod.Spec.Volumes, model.Spec.Volumes, func(volume, model *corev1.Volume) {
		share(&volume.VolumeSource, &model.VolumeSource) // an instance's claims have names of their own
	})
}

// shareStatus leaves out the fields that tell of one container alone.
func shareStatus(status, model *corev1.ContainerStatus) {
	share(&status.AllocatedResources, &model.AllocatedResources)
	share(&status.Resources, &model.Resources)
	share(&status.User, &model.User)
}

// eachOf calls a function with the elements that have the same place in both lists,
// unless they are one list, which is cached and may not be written to.
func eachOf[T any](list, models []T, f func(element, model *T)) {
	if len(list) > 0 && len(models) > 0 && &list[0] == &models[0] {
		return
	}
	for i := range min(len(list), len(models)) {
		f(&list[i], &models[i])
	}
}

// shareFields shares the fields of a struct, of which all are exported. Most are not
// set, and there is nothing to share then.
func shareFields[T any](s, model *T) {
	fields, models := reflect.ValueOf(s).Elem(), reflect.ValueOf(model).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).IsZero() && reflect.DeepEqual(fields.Field(i).Addr().Interface(), models.Field(i).Addr().Interface()) {
			fields.Field(i).Set(models.Field(i))
		}
	}
}

// share replaces a value by the model's if they are equal.
func share[T any](value, model *T) {
	if reflect.DeepEqual(value, model) {
		*value = *model
	}
}
