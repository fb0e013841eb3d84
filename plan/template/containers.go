package template

import (
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// SharedContainers are the containers of the template, with the pod's of the same
// name.
func SharedContainers(pod *corev1.Pod, t *corev1.PodTemplateSpec) iter.Seq2[*corev1.Container, *corev1.Container] {
	return func(yield func(has, want *corev1.Container) bool) {
		for _, lists := range [2][2][]corev1.Container{
			{pod.Spec.InitContainers, t.Spec.InitContainers},
			{pod.Spec.Containers, t.Spec.Containers},
		} {
			for w := range lists[1] {
				for h := range lists[0] {
					if lists[0][h].Name == lists[1][w].Name && !yield(&lists[0][h], &lists[1][w]) {
						return
					}
				}
			}
		}
	}
}

// IsSidecar says whether an init container keeps running.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// ImageChanges tells the images that the template changes, by container.
func (r *Record) ImageChanges(pod *corev1.Pod, t *corev1.PodTemplateSpec) []string {
	var out []string
	for has, want := range SharedContainers(pod, t) {
		if r.ChangesImage(has, want) {
			out = append(out, fmt.Sprintf("image of %s from %s to %s", want.Name, has.Image, want.Image))
		}
	}
	return out
}

// ChangesImages says whether the template changes an image.
func (r *Record) ChangesImages(pod *corev1.Pod, t *corev1.PodTemplateSpec) bool {
	for has, want := range SharedContainers(pod, t) {
		if r.ChangesImage(has, want) {
			return true
		}
	}
	return false
}

// KeepsPolicy names a container that may run an old image after an update in place: the
// template gives it an image of the tag latest, which a new pod pulls at each start, and
// says nothing of imagePullPolicy. The API server gave the pod IfNotPresent for its old
// tag, and a pod keeps that: its node may have another latest from before.
func (r *Record) KeepsPolicy(pod *corev1.Pod, t *corev1.PodTemplateSpec) (container string) {
	for has, want := range SharedContainers(pod, t) {
		if want.ImagePullPolicy == "" && has.ImagePullPolicy == corev1.PullIfNotPresent && r.ChangesImage(has, want) && isPulledAlways(want.Image) {
			return want.Name
		}
	}
	return ""
}
