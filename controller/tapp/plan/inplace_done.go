package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// InPlaceDone says whether the in-place update that the pod's annotation records
// has come to its end: the kubelet has seen it, and each container that it
// restarts is another one than before, runs the wanted image, and is ready. When
// it has not, reason says why in CamelCase, and why in a sentence that names the
// container. Without a record nothing is under way.
//
// Readiness of containers that did not change is none of its business: Ready
// sums that up, and a container that was broken before must not keep the gate
// closed.
func InPlaceDone(pod *corev1.Pod) (done bool, reason, why string) {
	state, ok := ReadInPlaceState(pod)
	if !ok || len(state.LastContainerStatuses) == 0 {
		return true, "", ""
	}
	if reportsGeneration(pod) && pod.Status.ObservedGeneration < pod.Generation {
		return false, "NotObserved", fmt.Sprintf("the kubelet has not seen generation %d of the pod yet, but %d", pod.Generation, pod.Status.ObservedGeneration)
	}
	for _, c := range containersOf(pod) {
		last, ok := state.LastContainerStatuses[c.Name]
		if !ok || !c.restarts() || c.ended(pod.Spec.RestartPolicy) {
			continue
		}
		if reason, why := c.unsettled(last, state); reason != "" {
			return false, reason, why
		}
		if reason, why := c.unready(); reason != "" {
			return false, reason, why
		}
	}
	return true, "", ""
}

// reportsGeneration says whether the pod's kubelet tells which generation it has
// seen. Kubelets before 1.33 do not, also when the API server counts generations.
func reportsGeneration(pod *corev1.Pod) bool {
	return pod.Generation != 0 && pod.Status.ObservedGeneration != 0
}

// unsettled says why a container is not yet, or not certainly, one that the
// kubelet started from the image that its spec names; empty reason: it is. The
// caller has made sure that the kubelet saw the spec, where that can be known.
//
// What makes it hard: the status lags behind the kubelet, which lags behind the
// spec. Seeing the generation only means that the kubelet began to act on it: it
// reports that before it kills what has to go, with statuses from before. So:
//
// The container is the recorded one. The kubelet restarts it if and only if the
// image text that it was started from is not, letter by letter, the spec's. When
// it is (an update was reverted before the kubelet acted on it, or was none),
// waiting for a restart would never end.
//
// The container is another one. It was started from the spec's image, or it is a
// restart that overtook the update: a crash between our read and the kubelet's, or
// the image of an earlier update that was replaced before it came to its end. A
// name or digest that matches proves the former. A name that does not match proves
// nothing in general, because the runtime reports any one of the names that the
// image's id has; so it is believed only if it is that of an image that the spec
// named in between (Via), the image is another one than the recorded container's,
// and there were no more starts than such names. All else is accepted: the kubelet
// only ever starts what the spec names. A crash that overtook the update of a
// crashing container may then end the update a moment early; the kubelet makes the
// container unready when it restarts it.
//
// Where the kubelet does not tell what it has seen, the same rules hold without
// that certainty. A revert may then count as done while the kubelet still acts on
// the reverted image. The other way round it would never be done when the kubelet
// did not.
func (c container) unsettled(last LastContainerStatus, state *InPlaceState) (reason, why string) {
	status, want := c.status, c.Image
	switch {
	case status == nil || status.ContainerID == "":
		return c.waiting("ContainerNotStarted", fmt.Sprintf("container %s has not started with image %s", c.Name, want))
	case last.legacy():
		if runsImage(status, want) || last.ImageID != "" && last.ImageID != status.ImageID || startedSince(status, state) {
			return "", ""
		}
	case status.ContainerID != last.ContainerID:
		if runsImage(status, want) || !c.overtook(last) {
			return "", ""
		}
	case last.Image != "":
		if last.Image == want {
			return "", ""
		}
	case c.mayStayUnder(last):
		return "", ""
	}
	return c.waiting("ContainerNotRestarted", fmt.Sprintf("container %s has not restarted with image %s, it runs %s", c.Name, want, status.Image))
}

// overtook says whether a container that is not the recorded one looks like one
// that was started from an image that the spec has named in between. After more
// starts than there are such images it is taken for the wanted one.
func (c container) overtook(last LastContainerStatus) bool {
	starts := int(c.status.RestartCount - last.RestartCount)
	if last.ContainerID == "" {
		starts++ // a first start counts as no restart
	}
	return starts <= len(last.Via) && last.tells(c.status) &&
		slices.ContainsFunc(last.Via, func(image string) bool { return runsImage(c.status, image) })
}

// mayStayUnder says whether the recorded container, of which it is not known what
// image it was started from, may have been started from the wanted one, so that
// the kubelet may never restart it.
func (c container) mayStayUnder(last LastContainerStatus) bool {
	return slices.ContainsFunc(last.Via, func(image string) bool { return sameImage(image, c.Image) })
}

// startedSince compares the kubelet's clock with the controller's. That is good
// enough for updates that tkestack/tapp left behind: there is no other evidence
// of a restart with an image of the same digest.
func startedSince(status *corev1.ContainerStatus, state *InPlaceState) bool {
	running := status.State.Running
	return running != nil && !state.UpdateTimestamp.IsZero() && running.StartedAt.After(state.UpdateTimestamp.Time)
}

// unready says why a container does not work; empty reason: it does.
func (c container) unready() (reason, why string) {
	status := c.status
	if status.Ready && (status.Started == nil || *status.Started) {
		return "", ""
	}
	return c.waiting("ContainerNotReady", fmt.Sprintf("container %s is not ready", c.Name))
}

// waiting gives the container's own reason to wait precedence, because it names
// the cause: ImagePullBackOff, CrashLoopBackOff.
func (c container) waiting(reason, why string) (string, string) {
	if c.status == nil || c.status.State.Waiting == nil || c.status.State.Waiting.Reason == "" {
		return reason, why
	}
	w := c.status.State.Waiting
	why += ": " + w.Reason
	if w.Message != "" {
		why += ", " + w.Message
	}
	return w.Reason, why
}
