package inplace

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// podPatch is a strategic merge patch of a pod. Containers merge by name, and
// null removes a key. The UID makes it fail on another pod of the same name.
type podPatch struct {
	Metadata metaPatch  `json:"metadata"`
	Spec     *specPatch `json:"spec,omitempty"`
}

type metaPatch struct {
	UID         types.UID          `json:"uid,omitempty"`
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
}

type specPatch struct {
	InitContainers []imagePatch `json:"initContainers,omitempty"`
	Containers     []imagePatch `json:"containers,omitempty"`
}

type imagePatch struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// ErrContainerMissing is why a pod cannot be changed in place: it lacks a
// container that its template has.
var ErrContainerMissing = errors.New("the pod has no such container")

// Patch is the one strategic merge patch that brings a pod to want, as far
// as that goes in place: the images of containers and initContainers, labels and
// annotations, and the record of what to wait for. Containers are matched by
// name; one that only the pod has, such as an injected sidecar, is left alone.
// restarts names the containers that the kubelet restarts because of it.
//
// Hashes, images and record change in one write: whoever sees the new images
// sees the record too.
func Patch(pod, want *corev1.Pod, h template.Hashes, now time.Time) (patch []byte, restarts []string, err error) {
	spec, err := imagesPatch(pod, want)
	if err != nil {
		return nil, nil, err
	}
	state := &State{Revision: h.Template, UpdateTimestamp: metav1.NewTime(now),
		LastContainerStatuses: map[string]LastContainerStatus{}}
	for name, last := range pendingContainers(pod, now) {
		state.LastContainerStatuses[name] = last
	}
	for _, c := range containersOf(pod) {
		if image, ok := spec.imageOf(c); !ok || image == c.Image || !c.restarts() || c.ended(pod.Spec.RestartPolicy) {
			continue
		}
		restarts = append(restarts, c.Name)
		state.LastContainerStatuses[c.Name] = c.record(pod, now)
	}
	text, err := json.Marshal(state)
	if err != nil {
		return nil, nil, fmt.Errorf("record the state of the update: %w", err)
	}
	p := podPatch{Metadata: metadataChanges(pod, want, h)}
	p.Metadata.annotate(tappv1.AnnotationInPlaceState, string(text))
	if len(spec.Containers)+len(spec.InitContainers) > 0 {
		p.Spec = spec
	}
	patch, err = json.Marshal(p)
	if err != nil {
		return nil, nil, fmt.Errorf("write the patch of an in-place update: %w", err)
	}
	return patch, restarts, nil
}

// imagesPatch holds the images that differ. They are compared as text: that is
// how the kubelet compares them.
func imagesPatch(pod, want *corev1.Pod) (*specPatch, error) {
	first, err := imagePatches(pod.Spec.InitContainers, want.Spec.InitContainers)
	if err != nil {
		return nil, fmt.Errorf("spec.initContainers%w", err)
	}
	regular, err := imagePatches(pod.Spec.Containers, want.Spec.Containers)
	if err != nil {
		return nil, fmt.Errorf("spec.containers%w", err)
	}
	return &specPatch{InitContainers: first, Containers: regular}, nil
}

func imagePatches(have, want []corev1.Container) ([]imagePatch, error) {
	var patches []imagePatch
	for i := range want {
		at := slices.IndexFunc(have, func(c corev1.Container) bool { return c.Name == want[i].Name })
		if at < 0 {
			return nil, fmt.Errorf("[%s]: %w", want[i].Name, ErrContainerMissing)
		}
		if have[at].Image != want[i].Image {
			patches = append(patches, imagePatch{want[i].Name, want[i].Image})
		}
	}
	return patches, nil
}

// imageOf is the image that the patch gives a container.
func (p *specPatch) imageOf(c container) (string, bool) {
	patches := p.Containers
	if c.init {
		patches = p.InitContainers
	}
	i := slices.IndexFunc(patches, func(i imagePatch) bool { return i.Name == c.Name })
	if i < 0 {
		return "", false
	}
	return patches[i].Image, true
}
