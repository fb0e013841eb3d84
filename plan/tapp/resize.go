package tapp

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
)

// An update that changes resources in place is two writes: one patch as for an
// update of images, which brings the hashes and the annotation AnnotationResized,
// and the resize. The annotation goes first and stays: from then on the pod's
// resources are compared with its template's, and it follows the template only
// when they are the same and its node has seen to that. Without it they are not
// looked at: defaults of the namespace and other programs have a say in them.

// mayResize says whether the resources of the pod may change in place: the user
// and the cluster allow it, and nothing else of the template's spec but images
// differs from what the pod was made of.
func (s *spec) mayResize(i *instance) bool {
	u := &s.tapp.Spec.UpdateStrategy.InPlaceUpdate
	return u.Resources && s.policy.Resize && u.Policy != tappv1.ReCreate &&
		cmp.Or(i.pod.Annotations[tappv1.AnnotationShapeHash], i.pod.Labels[tappv1.LabelUniqHash]) == i.template.shape()
}

// resizeToBegin says how a pod gets to a template that differs in resources.
func (s *spec) resizeToBegin(i *instance) kind {
	if !s.mayResize(i) {
		return recreate
	}
	switch r := inplace.ResizeTo(i.pod, i.template.Spec); {
	case r.Blocked != "":
		return recreate
	case r.Restarts || s.changesImages(i):
		return updateInPlace
	}
	return relabel
}

// resizeToEnd says what is left to do for a pod that has the hashes of its
// template, and not its resources.
func (s *spec) resizeToEnd(i *instance) kind {
	if !s.mayResize(i) || resizeRefused(i) {
		return recreate
	}
	reason, _ := inplace.ResizeUnderWay(i.pod)
	switch r := inplace.ResizeTo(i.pod, i.template.Spec); {
	case r.Blocked != "":
		return recreate
	case len(r.Changes) > 0 && r.Restarts:
		return resizeAndRestart
	case len(r.Changes) > 0:
		return resize
	case reason == corev1.PodReasonInfeasible:
		return recreate
	}
	return awaitResize
}

func resizeRefused(i *instance) bool {
	return inplace.ResizeRefused(i.pod, i.template.Hashes.Template)
}

// resourcesOf are the changes of resources that an update of images, labels and
// annotations brings about.
func (s *spec) resourcesOf(i *instance) []string {
	if i.pod.Labels[tappv1.LabelUniqHash] == i.template.Hashes.Uniq || !s.mayResize(i) {
		return nil
	}
	return inplace.ResizeTo(i.pod, i.template.Spec).Changes
}

// wantedPod is the pod that an update of images, labels and annotations brings the
// instance's pod to. It is marked for a resize if that follows.
func (s *spec) wantedPod(i *instance, resources []string) *corev1.Pod {
	want := s.podFor(i)
	if len(resources) > 0 {
		setAnnotation(want, tappv1.AnnotationResized, "true")
	}
	return want
}

// whyNotResized says why a pod whose resources may change in place is recreated
// all the same; empty: there is another reason.
func (s *spec) whyNotResized(i *instance) string {
	if !s.mayResize(i) {
		return ""
	}
	if r := inplace.ResizeTo(i.pod, i.template.Spec); r.Blocked != "" {
		return r.Blocked
	}
	if resizeRefused(i) {
		return "the API server refused to resize the pod on its node"
	}
	if reason, why := inplace.ResizeUnderWay(i.pod); reason == corev1.PodReasonInfeasible {
		return why
	}
	return ""
}
