package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// What the admission of a service mesh and of a mirror makes of pods.
const (
	mirror         = "mirror.example/"
	meshAnnotation = "mesh.example/config"
	meshOfTemplate = "app"
	meshMerged     = "app,proxy"
	proxy          = "proxy"
)

// admit is the namespace's quota, and admission that changes pods.
func (w *world) admit(resource string, o object) error {
	if t, ok := o.(*tappv1.TApp); ok {
		return w.admitSize(t)
	}
	if resource != pods {
		return nil
	}
	if err := w.refuses(o.(*corev1.Pod), false); err != nil {
		return err
	}
	if w.quota >= 0 && len(w.Tables[pods].Objects) >= w.quota {
		return apierrors.NewForbidden(w.GroupResource(pods), o.GetName(), fmt.Errorf("exceeded quota: pods, limited: pods=%d", w.quota))
	}
	pod := o.(*corev1.Pod)
	if w.has(classResources) {
		right(pod, w.signs())
	}
	if !w.has(classAdmission) {
		return nil
	}
	if has := pod.Annotations[meshAnnotation]; has == meshOfTemplate {
		pod.Annotations[meshAnnotation] = meshMerged
	}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: proxy, Image: "mesh:v1"})
	pullFromMirror(pod)
	return nil
}

// besides is a container whose resources admission sets right, and rightSize what it sets.
// In half the runs it says so in an annotation, as a VerticalPodAutoscaler does: where somebody
// overwrites the hash of a pod, nothing else tells its resources from those of another template.
const (
	besides         = "side"
	rightSize       = "70m"
	rightAnnotation = "vpaUpdates"
)

// signs says whether this admission tells what it wrote.
func (w *world) signs() bool { return w.plan.Seed%2 == 0 }

// right is an admission that knows better what containers need.
func right(pod *corev1.Pod, signs bool) {
	if signs {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, rightAnnotation, "cpu request of "+besides)
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == besides {
			c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse(rightSize)
		}
	}
}

// isTakenForOld says whether a pod is one that TApp cannot tell from one of another template,
// and so has to recreate: its hash is none of ours, and who wrote its resources did not sign.
func isTakenForOld(pod *corev1.Pod) bool {
	hash := pod.Labels[tappv1.LabelTemplateHash]
	return (hash == "" || hash == wrongHash) && pod.Annotations[rightAnnotation] == "" &&
		slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return isRight(&c) })
}

// isRight says whether the cpu of a container is what admission made of it.
func isRight(c *corev1.Container) bool {
	return c.Name == besides && c.Resources.Requests.Cpu().Equal(resource.MustParse(rightSize))
}

func pullFromMirror(pod *corev1.Pod) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if !strings.HasPrefix(list[i].Image, mirror) {
				list[i].Image = mirror + list[i].Image
			}
		}
	}
}

// admitUpdate is the mirror, where it sees to updates as well, and who refuses to resize.
func (w *world) admitUpdate(resource, sub string, now object) error {
	if t, ok := now.(*tappv1.TApp); ok && sub == "" {
		return w.admitSize(t)
	}
	pod, ok := now.(*corev1.Pod)
	if ok && resource == pods && (sub == "" || sub == "resize") {
		if err := w.refuses(pod, true); err != nil {
			return err
		}
	}
	switch {
	case !ok || resource != pods:
	case sub == "" && w.has(classAdmission) && w.plan.Seed%2 == 0:
		pullFromMirror(pod)
	case sub == "resize" && w.has(classResizes) && w.plan.Seed%2 == 0:
		return w.Invalid(pods, pod.Name, "spec", "Forbidden: pod resize is not supported on the node of the pod")
	}
	return nil
}

// isImage says whether the image of a container is that of its template, or its copy in
// the mirror.
func isImage(image, of string) bool { return image == of || image == mirror+of }

// keptAdmitted says what of what admission wrote the controller has set back; empty: nothing.
func keptAdmitted(before, after *corev1.Pod) string {
	if before.Annotations[meshAnnotation] == meshMerged && after.Annotations[meshAnnotation] != meshMerged {
		return fmt.Sprintf("its annotation is %q", after.Annotations[meshAnnotation])
	}
	for _, c := range before.Spec.Containers {
		i := slices.IndexFunc(after.Spec.Containers, func(x corev1.Container) bool { return x.Name == c.Name })
		switch {
		case i < 0 || c.Name == proxy && after.Spec.Containers[i].Image != c.Image:
			return "container " + c.Name + " is not what it was"
		case isRight(&c) && !isRight(&after.Spec.Containers[i]):
			return "container " + c.Name + " has other resources"
		case c.Image == mirror+after.Spec.Containers[i].Image:
			return "container " + c.Name + " is not pulled from the mirror any more"
		}
	}
	return ""
}

// mostMessage of a condition is what the schema of the CRD allows.
const mostMessage = 32768

// checkSchema refuses what the schema of the CRD refuses, as far as a controller could come
// to write it.
func checkSchema(t *tappv1.TApp) error {
	for _, c := range t.Status.Conditions {
		if len(c.Message) > mostMessage {
			return fmt.Errorf("status.conditions[%s].message: Too long: may not be more than %d bytes", c.Type, mostMessage)
		}
	}
	return nil
}
