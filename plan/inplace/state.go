// Package inplace updates a running pod in place: the readiness gate that takes it
// out of its Services, the patches, the record of what they wait for, and when that
// has come.
package inplace

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// State is what the last in-place update of a pod waits for. It is kept
// in the pod's annotation AnnotationInPlaceState, which the update's patch
// writes, so that a new leader goes on from there. What an update of tkestack/tapp waits
// for is made of the pod, see originalState.
type State struct {
	// Revision is the template hash that the pod was brought to.
	Revision string `json:"revision"`
	// UpdateTimestamp is when the pod was patched, by the controller's clock.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// LastContainerStatuses is, by name, each container that has to restart, or
	// may have to because of an earlier update that had not come to its end.
	LastContainerStatuses map[string]LastContainerStatus `json:"lastContainerStatuses"`
	// InitContainers are, by name, the init containers that ran another image than the
	// pod's spec names since an update in place. They run it in the next pod.
	InitContainers map[string]LastContainerStatus `json:"initContainers,omitempty"`
}

// LastContainerStatus is what is known of a container when its pod was patched.
type LastContainerStatus struct {
	// ImageID that the container's status reported.
	ImageID string `json:"imageID,omitempty"`
	// ContainerID that the status reported; empty when none had started.
	ContainerID string `json:"containerID,omitempty"`
	// RestartCount that the status reported.
	RestartCount int32 `json:"restartCount,omitempty"`
	// Image of the spec under which that container was started; empty when that is
	// not known.
	Image string `json:"image,omitempty"`
	// Via are the other images that the spec has named, and under which the kubelet
	// may have started a container that the status did not show yet: those of
	// updates that had not come to their end, and the one that could not be pulled.
	Via []string `json:"via,omitempty"`
}

// legacy is true where nothing was recorded: the update is tkestack/tapp's.
func (l LastContainerStatus) legacy() bool {
	return l.ContainerID == "" && l.Image == "" && len(l.Via) == 0
}

// ReadState of a pod. A malformed annotation is as good as none: what it
// said cannot be known.
func ReadState(pod *corev1.Pod) (*State, bool) {
	if IsOriginals(pod) {
		return originalState(pod)
	}
	text, ok := pod.Annotations[tappv1.AnnotationInPlaceState]
	if !ok {
		return nil, false
	}
	var state *State
	if err := json.Unmarshal([]byte(text), &state); err != nil || state == nil {
		return nil, false
	}
	return state, true
}

// container is one of a pod's, as the spec wants it and the status shows it.
type container struct {
	*corev1.Container
	// sidecar is an init container that keeps running, and so restarts when its
	// image changes.
	sidecar bool
	// init is true for init containers, sidecars included.
	init bool
	// status is nil before the kubelet reported one.
	status *corev1.ContainerStatus
}

// containersOf lists the containers of a pod, the init containers first.
func containersOf(pod *corev1.Pod) []container {
	list := make([]container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		list = append(list, container{Container: c, init: true, sidecar: template.IsSidecar(c), status: statusOf(pod.Status.InitContainerStatuses, c.Name)})
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		list = append(list, container{Container: c, status: statusOf(pod.Status.ContainerStatuses, c.Name)})
	}
	return list
}

func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	if i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == name }); i >= 0 {
		return &statuses[i]
	}
	return nil
}

// restarts says whether the kubelet restarts the container when its image
// changes. Other init containers run once, before the pod starts: their new image
// takes effect when the instance's next pod starts (see BehindInitImages).
func (c container) restarts() bool { return c.sidecar || !c.init }

// ended says whether the container has run to its end, so that the kubelet will
// not start it again, whatever its image. As ContainerShouldRestart in
// k8s.io/kubernetes/pkg/api/v1/pod.
func (c container) ended(policy corev1.RestartPolicy) bool {
	if c.sidecar || c.status == nil || c.status.State.Terminated == nil {
		return false
	}
	code := c.status.State.Terminated.ExitCode
	if c.RestartPolicy != nil {
		for _, rule := range c.RestartPolicyRules {
			if on := rule.ExitCodes; on != nil && slices.Contains(on.Values, code) == (on.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
				return false // all actions that a rule can have are restarts
			}
		}
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	return policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && code == 0
}
