package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// pendingContainers are the records of an earlier update for containers which
// may still have to restart because of it. A new record that dropped them would
// open the gate too early.
func pendingContainers(pod *corev1.Pod) map[string]LastContainerStatus {
	pending := map[string]LastContainerStatus{}
	state, ok := ReadInPlaceState(pod)
	if !ok {
		return pending
	}
	for _, c := range containersOf(pod) {
		last, ok := state.LastContainerStatuses[c.Name]
		if ok && c.restarts() && !c.isSettled(pod, last, state) {
			pending[c.Name] = last
		}
	}
	return pending
}

// isSettled says whether what runs was started from the image that the spec names
// now. A kubelet that reported the generation acts on it before it looks at the
// next one. Where it does not tell, only an image that is another one than before,
// and goes by the wanted name and no other candidate's, is proof.
func (c container) isSettled(pod *corev1.Pod, last LastContainerStatus, state *InPlaceState) bool {
	if reason, _ := c.unsettled(last, state); reason != "" {
		return false
	}
	if reportsGeneration(pod) {
		return pod.Status.ObservedGeneration >= pod.Generation
	}
	candidates := append(slices.Clone(last.Via), last.Image, c.Image)
	return c.status.ContainerID != last.ContainerID && last.tells(c.status) && onlyMatch(c.status, candidates) == c.Image
}

// tells says whether the name that a status reports means anything: a runtime may
// call an image by any of its tags, so that it does not when the image has not
// changed.
func (l LastContainerStatus) tells(status *corev1.ContainerStatus) bool {
	return l.ImageID == "" || l.ImageID != status.ImageID
}

// record notes what is known of a container just before its image changes: which
// one it is, and what image it was started from. The latter is the spec's, unless
// an earlier update is under way.
func (c container) record(pod *corev1.Pod) LastContainerStatus {
	r := LastContainerStatus{Image: c.Image}
	if c.status != nil {
		r.ImageID, r.ContainerID, r.RestartCount = c.status.ImageID, c.status.ContainerID, c.status.RestartCount
	}
	if r.ContainerID == "" {
		// None has started, but one still may before the kubelet sees the patch.
		r.Image, r.Via = "", []string{c.Image}
	}
	state, ok := ReadInPlaceState(pod)
	if !ok {
		return r
	}
	last, ok := state.LastContainerStatuses[c.Name]
	if !ok || c.isSettled(pod, last, state) {
		return r
	}
	r.Via = append(slices.Clone(last.Via), c.Image)
	switch {
	case r.ContainerID != "" && last.legacy():
		// What it was started from is what it reports, in the runtime's spelling.
		r.Image, r.Via = "", append(r.Via, c.status.Image)
	case r.ContainerID != "" && r.ContainerID == last.ContainerID:
		r.Image = last.Image
	default:
		r.Image, r.Via = "", append(r.Via, last.Image)
		if r.ContainerID != "" && last.tells(c.status) {
			r.Image = onlyMatch(c.status, r.Via)
		}
	}
	r.Via = latest(r.Via)
	return r
}

// maxVia bounds the record of a pod that is updated over and over while nobody
// can tell what it runs.
const maxVia = 8

// latest of the images, each once.
func latest(images []string) []string {
	var list []string
	for _, image := range slices.Backward(images) {
		if image != "" && !slices.Contains(list, image) && len(list) < maxVia {
			list = append(list, image)
		}
	}
	slices.Reverse(list)
	return list
}

// onlyMatch is the one image that the status names, "" when it names none of them
// or more than one.
func onlyMatch(status *corev1.ContainerStatus, images []string) string {
	match := ""
	for _, image := range images {
		if image == "" || image == match || !runsImage(status, image) {
			continue
		}
		if match != "" {
			return ""
		}
		match = image
	}
	return match
}
