package inplace

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// An init container that has run is not started again for a new image. The record of the
// update that brings the image tells of that, until the container runs anew or the image
// is taken back.
//
// | the init container | of the recorded ones |
// |---|---|
// | has not run yet | no: it will run what the spec names |
// | ran the image that the spec names after the patch | no |
// | ran another one | yes, with that image and its containerID |
// | was among them, and has another containerID now, as after a restart of the node | no |

// behind are the init containers of which the pod runs another image than its spec names
// after the patch.
func (u Update) behind(spec *specPatch) map[string]LastContainerStatus {
	var out map[string]LastContainerStatus
	was := map[string]LastContainerStatus{}
	if state, ok := ReadState(u.Pod); ok {
		was = state.InitContainers
	}
	for _, c := range containersOf(u.Pod) {
		if !c.init || c.sidecar || c.status == nil || c.status.ContainerID == "" {
			continue
		}
		image, patched := spec.imageOf(c)
		if !patched {
			image = c.Image
		}
		ran := LastContainerStatus{ContainerID: c.status.ContainerID, Image: c.Image}
		if last, ok := was[c.Name]; ok && last.ContainerID == ran.ContainerID {
			ran.Image = last.Image
		}
		if template.SameImage(ran.Image, image) {
			continue
		}
		if out == nil {
			out = map[string]LastContainerStatus{}
		}
		out[c.Name] = ran
	}
	return out
}

// BehindInitImages says, in a sentence, which init containers of the pod ran another image
// than its spec names; empty: none.
func BehindInitImages(pod *corev1.Pod) string {
	if len(pod.Spec.InitContainers) == 0 || !strings.Contains(pod.Annotations[tappv1.AnnotationInPlaceState], `"initContainers"`) {
		return "" // without a look at the record, which costs most
	}
	state, ok := ReadState(pod)
	if !ok {
		return ""
	}
	var parts []string
	for _, c := range containersOf(pod) {
		last, ok := state.InitContainers[c.Name]
		if !ok || !c.init || template.SameImage(last.Image, c.Image) || c.status != nil && c.status.ContainerID != "" && c.status.ContainerID != last.ContainerID {
			continue
		}
		parts = append(parts, fmt.Sprintf("init container %s ran %s and not %s", c.Name, last.Image, c.Image))
	}
	return strings.Join(parts, ", ")
}
