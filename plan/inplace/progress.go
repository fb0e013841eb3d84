package inplace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/template"
)

// Progress is how far an in-place update has come.
type Progress struct {
	Done bool
	// Reason, in CamelCase, and Why, a sentence that names the container, say what is
	// still to come; empty when it is done.
	Reason, Why string
	// Waiting: the reason is the kubelet's, of a container that waits.
	Waiting bool
	// Left is how long only the time can tell; 0: until the pod changes.
	Left time.Duration
}

// Reasons of a Progress that are not about one container that restarts.
const (
	ReasonNotObserved = "NotObserved"
	ReasonStopped     = "StoppedByUpdate"
)

// ProgressOf says whether the in-place update that the pod's annotation records
// has come to its end: the kubelet has seen it, and each container that it
// restarts is another one than before, runs the wanted image, and is ready.
// Without a record nothing is under way.
//
// Only containers that the update restarts count. A container that was broken before
// must not keep the gate closed; the condition Ready sums up the others.
func ProgressOf(pod *corev1.Pod, now time.Time) Progress {
	state, ok := ReadState(pod)
	if !ok || len(state.LastContainerStatuses) == 0 {
		return Progress{Done: true}
	}
	if reportsGeneration(pod) && pod.Status.ObservedGeneration < pod.Generation {
		return Progress{Reason: ReasonNotObserved, Why: fmt.Sprintf("the kubelet has not seen generation %d of the pod yet, but %d", pod.Generation, pod.Status.ObservedGeneration)}
	}
	for _, c := range containersOf(pod) {
		last, ok := state.LastContainerStatuses[c.Name]
		if !ok || !c.restarts() {
			continue
		}
		if c.ended(pod.Spec.RestartPolicy) {
			if c.stoppedBy(last, state, pod) {
				return Progress{Reason: ReasonStopped, Why: fmt.Sprintf("container %s ended before it ran image %s, and its restartPolicy keeps the kubelet from starting it", c.Name, c.Image)}
			}
			continue
		}
		switch found, left := c.restart(last, state), c.timeToAct(pod, state, now); {
		case found == notStarted:
			return c.waiting("ContainerNotStarted", fmt.Sprintf("container %s has not started with image %s", c.Name, c.Image))
		case found == notRestarted, found == mayRestart && left > 0:
			p := c.waiting("ContainerNotRestarted", fmt.Sprintf("container %s has not restarted with image %s, it runs %s", c.Name, c.Image, c.status.Image))
			if found == mayRestart {
				p.Left = left
			}
			return p
		case !c.status.Ready || c.status.Started != nil && !*c.status.Started:
			return c.waiting("ContainerNotReady", fmt.Sprintf("container %s is not ready", c.Name))
		}
	}
	return Progress{Done: true}
}

// timeToAct is what is left of the time within which a kubelet that reported an
// update restarts a container for it: it looks at all its pods each minute, and the
// container has a grace period. With 0 or less it would have, had it something to do.
// That is no proof (its sync may fail for hours), so that it decides only where
// nothing else does, and where to wait for more would be to wait for ever.
func (c container) timeToAct(pod *corev1.Pod, state *State, now time.Time) time.Duration {
	since := state.UpdateTimestamp.Time
	if c.status != nil && c.status.State.Running != nil && c.status.State.Running.StartedAt.After(since) {
		since = c.status.State.Running.StartedAt.Time // it may have been busy with the image of this one
	}
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	return since.Add(kubeletSyncs + time.Duration(grace)*time.Second).Sub(now)
}

// kubeletSyncs is how often a kubelet looks at a pod by itself (its setting
// syncFrequency), and the second that the record's times may lack.
const kubeletSyncs = time.Minute + time.Second

// reportsGeneration says whether the pod's kubelet tells which generation it has
// seen. Kubelets before 1.33 do not, also when the API server counts generations.
func reportsGeneration(pod *corev1.Pod) bool {
	return pod.Generation != 0 && pod.Status.ObservedGeneration != 0
}

// restart says whether the kubelet restarted a container for an update.
type restart int

const (
	notStarted   restart = iota // no container has started
	notRestarted                // it runs as before
	mayRestart                  // perhaps it did; if not, the kubelet is about to
	restarted                   // it did, or most likely did
)

// restart of a container. The caller has made sure that the kubelet saw the spec, where
// that can be known. The status lags behind the kubelet, which lags behind the spec: the
// kubelet reports a generation before it acts on it, and may see the next one first.
//
// | container in the status | what else is known | restart |
// |---|---|---|
// | none | | notStarted |
// | any, updated by tkestack/tapp | it runs the wanted image, or started after the gate was closed | restarted |
// | | neither | notRestarted |
// | another than recorded | its name or digest is the wanted image's | restarted |
// | | it goes by the name of an image of Via, has another digest than before, and started at most once for each image of Via | mayRestart |
// | | none of these: the kubelet starts only what the spec names | restarted |
// | the recorded one | it was started from the wanted image, letter by letter: the update was reverted before the kubelet acted | restarted |
// | | it was started from another image | notRestarted |
// | | nobody knows which image it was started from; Via has the wanted one, or is full | mayRestart |
// | | nobody knows which, and Via does not have the wanted one | notRestarted |
//
// A name that does not match proves nothing: a runtime reports any name that the image
// has. A crash that overtakes the update of a crashing container may end the update a
// moment early; the kubelet makes the container unready when it restarts it.
//
// A kubelet that does not report generations gets the same rules. A revert may then
// count as done while it still acts on the reverted image. To wait instead could be to
// wait for ever.
func (c container) restart(last LastContainerStatus, state *State) restart {
	status := c.status
	if status == nil || status.ContainerID == "" {
		return notStarted
	}
	proven, otherwise := false, notRestarted
	switch {
	case last.legacy():
		proven = template.RunsImage(status, c.Image) || startedSince(status, state)
	case status.ContainerID != last.ContainerID:
		proven, otherwise = template.RunsImage(status, c.Image) || !c.overtook(last), mayRestart
	case last.Image != "":
		proven = last.Image == c.Image
	case c.mayStayUnder(last):
		otherwise = mayRestart
	}
	if proven {
		return restarted
	}
	return otherwise
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
		slices.ContainsFunc(last.Via, func(image string) bool { return template.RunsImage(c.status, image) })
}

// mayStayUnder says whether the recorded container, of which it is not known what
// image it was started from, may have been started from the wanted one, so that
// the kubelet may never restart it.
func (c container) mayStayUnder(last LastContainerStatus) bool {
	return len(last.Via) >= maxVia || slices.ContainsFunc(last.Via, func(image string) bool { return template.SameImage(image, c.Image) })
}

// startedSince compares the kubelet's clock with the controller's. That is good
// enough for updates that tkestack/tapp left behind: nothing else tells
// of a restart with an image of the same digest.
func startedSince(status *corev1.ContainerStatus, state *State) bool {
	var start time.Time
	switch s := status.State; {
	case s.Running != nil:
		start = s.Running.StartedAt.Time
	case s.Terminated != nil:
		start = s.Terminated.StartedAt.Time
	}
	return !state.UpdateTimestamp.IsZero() && start.After(state.UpdateTimestamp.Time)
}

// waiting gives the container's own reason to wait precedence, because it names
// the cause: ImagePullBackOff, CrashLoopBackOff.
func (c container) waiting(reason, why string) Progress {
	if c.status == nil || c.status.State.Waiting == nil || c.status.State.Waiting.Reason == "" {
		return Progress{Reason: reason, Why: why}
	}
	w := c.status.State.Waiting
	why += ": " + w.Reason
	if w.Message != "" {
		why += ", " + message.Quote(w.Message)
	}
	return Progress{Reason: w.Reason, Why: why, Waiting: true}
}

// WaitingContainer tells of the first container that waits for such a reason, in the
// words of its status. The reason is empty when none does.
func WaitingContainer(pod *corev1.Pod, is func(reason string) bool) (reason, why string) {
	for _, c := range containersOf(pod) {
		if c.status == nil || c.status.State.Waiting == nil || !is(c.status.State.Waiting.Reason) {
			continue
		}
		if w := c.waiting("", "container "+c.Name+" is not ready"); w.Reason != "" {
			return w.Reason, w.Why
		}
	}
	return "", ""
}

// CertainlyDone is true where ProgressOf must be: the kubelet saw the spec, and
// every container is one that the record does not mention, is ready, and runs the
// image that the spec names. False says nothing.
func CertainlyDone(pod *corev1.Pod) bool {
	record, ok := pod.Annotations[tappv1.AnnotationInPlaceState]
	if !ok {
		return !mayBeUpdating(pod)
	}
	if pod.Generation == 0 || pod.Status.ObservedGeneration < pod.Generation {
		return false
	}
	for c := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[c].RestartPolicy != nil { // a sidecar
			return false
		}
	}
	for c := range pod.Spec.Containers {
		want := &pod.Spec.Containers[c]
		has := statusOf(pod.Status.ContainerStatuses, want.Name)
		if has == nil || has.ContainerID == "" || strings.Contains(record, has.ContainerID) || !has.Ready || has.Started == nil || !*has.Started {
			return false
		}
		// containerd reports references in full.
		if has.Image != want.Image && has.Image != "docker.io/"+want.Image && has.Image != "docker.io/library/"+want.Image {
			return false
		}
	}
	return true
}
