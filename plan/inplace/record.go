package inplace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/template"
)

// pendingContainers are the records of an earlier update for containers which
// may still have to restart because of it. A new record that dropped them would
// open the gate too early.
func pendingContainers(pod *corev1.Pod, now time.Time) map[string]LastContainerStatus {
	pending := map[string]LastContainerStatus{}
	state, ok := ReadState(pod)
	if !ok {
		return pending
	}
	for _, c := range containersOf(pod) {
		last, ok := state.LastContainerStatuses[c.Name]
		if ok && c.restarts() && !c.isSettled(pod, state, now) {
			pending[c.Name] = last
		}
	}
	return pending
}

// isSettled says whether what runs was started from the image that the spec names now,
// and the kubelet is not about to start another one. That takes more than to end an
// update: a record that takes the unknown for known could make the next update wait for
// a restart that never comes.
//
// | container in the status | settled |
// |---|---|
// | not restarted, or perhaps (see restart), or the kubelet has not seen the spec | no |
// | the recorded one | if the kubelet reports generations |
// | another one that goes by the name of another candidate (the recorded image, Via) | no |
// | another one with another digest, by the wanted name, and Via is empty | yes |
// | another one with another digest or by the wanted name | when the kubelet has had time to act |
// | any other | no |
func (c container) isSettled(pod *corev1.Pod, state *State, now time.Time) bool {
	last := state.LastContainerStatuses[c.Name]
	if c.restart(last, state) != restarted {
		return false
	}
	tells := reportsGeneration(pod)
	if tells && pod.Status.ObservedGeneration < pod.Generation {
		return false
	}
	if c.status.ContainerID == last.ContainerID {
		return tells
	}
	isOther := func(image string) bool { return image != "" && image != c.Image && template.RunsImage(c.status, image) }
	if isOther(last.Image) || slices.ContainsFunc(last.Via, isOther) {
		return false
	}
	changed, named := last.ImageID != "" && last.tells(c.status), template.RunsImage(c.status, c.Image)
	return changed && named && len(last.Via) == 0 || (changed || named) && c.timeToAct(pod, state, now) <= 0
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
func (c container) record(pod *corev1.Pod, now time.Time) LastContainerStatus {
	r := LastContainerStatus{Image: c.Image}
	if c.status != nil {
		r.ImageID, r.ContainerID, r.RestartCount = c.status.ImageID, c.status.ContainerID, c.status.RestartCount
	}
	if r.ContainerID == "" {
		// None has started, but one still may before the kubelet sees the patch.
		r.Image, r.Via = "", []string{c.Image}
	}
	state, ok := ReadState(pod)
	if !ok {
		return r
	}
	last, ok := state.LastContainerStatuses[c.Name]
	if !ok || c.isSettled(pod, state, now) {
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
