package tapp

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/template"
)

const reasonResources = "ResourcesChanged"

// An update that changes resources in place is two writes: one patch as for an
// update of images, which brings the hashes and the annotation AnnotationResized,
// and the resize. The annotation goes first and stays: from then on the pod's
// resources are compared with its template's, and it follows the template only
// when they are the same and its node has seen to that. Without it they are not
// looked at: defaults of the namespace and other programs have a say in them.

// mayResize says whether the resources of the pod may change in place: the user
// and the cluster allow it, and nothing else of the template's spec but images
// differs from what the pod was made of.
func (d *decision) mayResize(i *instance) bool {
	u := &d.tapp.Spec.UpdateStrategy.InPlaceUpdate
	return u.Resources && d.in.Policy.Resize && u.Policy != tappv1.ReCreate &&
		cmp.Or(i.pod.Annotations[tappv1.AnnotationShapeHash], i.pod.Labels[tappv1.LabelUniqHash]) == i.template.shape()
}

// changeToResize says how a pod gets to a template that differs in resources.
func (d *decision) changeToResize(i *instance) change {
	r := inplace.ResizeTo(i.pod, i.template.Spec)
	switch {
	case !d.mayResize(i) || r.Blocked != "":
		return recreate
	case r.Restarts || template.ChangesImage(i.pod, i.template.Spec, func(a, b string) bool { return a == b }):
		return inPlace
	}
	return relabel
}

// changeOfResources says what is left to do for a pod that has the hashes of its
// template, and not its resources.
func (d *decision) changeOfResources(i *instance) change {
	r := inplace.ResizeTo(i.pod, i.template.Spec)
	reason, _ := inplace.ResizeUnderWay(i.pod)
	switch {
	case !d.mayResize(i) || r.Blocked != "" || i.resizeRefused():
		return recreate
	case len(r.Changes) > 0 && r.Restarts:
		return resizeAndRestart
	case len(r.Changes) > 0:
		return resize
	case reason == corev1.PodReasonInfeasible:
		return recreate
	}
	return resizes
}

func (i *instance) resizeRefused() bool {
	return inplace.ResizeRefused(i.pod, i.template.Hashes.Template)
}

// wantedOf is the pod that an update of images, labels and annotations brings the
// instance's pod to. It is marked for a resize if that follows.
func (d *decision) wantedOf(i *instance) (want *corev1.Pod, resources []string) {
	want = d.podFor(i)
	if i.pod.Labels[tappv1.LabelUniqHash] != i.template.Hashes.Uniq && d.mayResize(i) {
		resources = inplace.ResizeTo(i.pod, i.template.Spec).Changes
	}
	if len(resources) > 0 {
		setAnnotation(want, tappv1.AnnotationResized, "true")
	}
	return want, resources
}

// resize changes the pod's resources. Where a container is restarted for it, the
// pod is taken out of its Services first.
func (d *decision) resize(i *instance, c change) {
	r := inplace.ResizeTo(i.pod, i.template.Spec)
	why := strings.Join(r.Changes, ", ")
	switch {
	case c == resizeAndRestart && inplace.HasGate(i.pod) && !inplace.GateClosed(i.pod):
		i.act(Action{Op: OpDrain, Pod: i.pod, Reason: reasonResources, Why: why,
			Status: inplace.GatePatch(i.pod.UID, false, "InPlaceUpdate", why, d.in.Now)})
	case c == resize || !inplace.HasGate(i.pod) || d.drained(i):
		patch, refused := r.Patch(i.template.Hashes.Template)
		i.act(Action{Op: OpResize, Pod: i.pod, Patch: patch, Refused: refused, Reason: reasonResources, Why: why})
	}
}

// whyNotResized says why a pod whose resources may change in place is recreated
// all the same; empty: there is another reason.
func (d *decision) whyNotResized(i *instance) string {
	if !d.mayResize(i) {
		return ""
	}
	if r := inplace.ResizeTo(i.pod, i.template.Spec); r.Blocked != "" {
		return r.Blocked
	}
	if i.resizeRefused() {
		return "its node is smaller than what the pod is to request"
	}
	if reason, why := inplace.ResizeUnderWay(i.pod); reason == corev1.PodReasonInfeasible {
		return why
	}
	return ""
}
