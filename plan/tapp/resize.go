package tapp

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/template"
)

// An update that changes resources in place is two writes: one patch as for an
// update of images, which brings the hashes and the annotation AnnotationResized,
// and the resize. The annotation goes first and stays. It names the requests and
// limits that the template has changed since the pod was created: from then on these
// are compared with the template's, and the pod follows the template only when they
// are the same and its node has seen to that. All others are not looked at: defaults
// of the namespace and other programs have a say in them.

// mayResize says whether the resources of the pod may change in place: the user
// and the cluster allow it, and nothing else of the template's spec but images
// differs from what the pod was made of.
func (s *spec) mayResize(i *instance) bool {
	u := &s.tapp.Spec.UpdateStrategy.InPlaceUpdate
	return u.Resources && s.policy.Resize && u.Policy != tappv1.ReCreate &&
		cmp.Or(i.pod.Annotations[tappv1.AnnotationShapeHash], i.pod.Labels[tappv1.LabelUniqHash]) == i.template.shape()
}

// resizeOf says what is to be done about the resources of the pod.
func (s *spec) resizeOf(i *instance) inplace.Resize {
	return inplace.ResizeTo(i.pod, i.template.Spec, s.resourcesToFollow(i))
}

// resourcesToFollow are those in which the pod follows the template: all that changed in
// it from what the pod was created with to what it is now.
func (s *spec) resourcesToFollow(i *instance) template.ResourceSet {
	follows := inplace.Resized(i.pod)
	if i.hasTemplate() {
		return follows
	}
	return follows.With(s.recordOf(i).ChangedResources(i.pod, i.template.Spec))
}

// resizeToBegin says how a pod gets to a template that differs in resources.
func (s *spec) resizeToBegin(i *instance) kind {
	if !s.mayResize(i) {
		return recreate
	}
	switch r := s.resizeOf(i); {
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
	switch r := s.resizeOf(i); {
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
	return s.resizeOf(i).Changes
}

// wantedPod is the pod that an update of images, labels and annotations brings the
// instance's pod to. It is marked for a resize if that follows.
func (s *spec) wantedPod(i *instance, resources []string) *corev1.Pod {
	want := s.podFor(i)
	if len(resources) > 0 {
		setAnnotation(want, tappv1.AnnotationResized, s.resourcesToFollow(i).String())
	}
	return want
}

// whyNotResized says why a pod whose resources may change in place is recreated
// all the same; empty: there is another reason.
func (s *spec) whyNotResized(i *instance) string {
	if !s.mayResize(i) {
		return ""
	}
	if r := s.resizeOf(i); r.Blocked != "" {
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
