package inplace

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	Target
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

// Update is an update in place of a pod.
type Update struct {
	// Pod as observed, and Want, the pod that its template makes.
	Pod, Want *corev1.Pod
	// Hashes of that template.
	Hashes template.Hashes
	// Now is the time of the update.
	Now time.Time
	// ResourceVersion of the pod that the patch holds for; empty: any.
	ResourceVersion string
}

// Patch is the one strategic merge patch that brings the pod to Want, as far as that
// goes in place: the images of containers and initContainers, labels and annotations
// that the template changed (see template.Record), and the record of what to wait for.
// Containers are matched by name; one that only the pod has, such as an injected sidecar,
// is left alone.
//
// Hashes, images and record change in one write: whoever sees the new images
// sees the record too.
func (u Update) Patch() ([]byte, error) {
	spec, err := imagesPatch(u.Pod, &u.Want.Spec)
	if err != nil {
		return nil, err
	}
	state := &State{Revision: u.Hashes.Template, UpdateTimestamp: metav1.NewTime(u.Now), LastContainerStatuses: pendingContainers(u.Pod, u.Now)}
	for _, c := range u.restarts(spec) {
		state.LastContainerStatuses[c.Name] = c.record(u.Pod, u.Now)
	}
	state.InitContainers = u.behind(spec)
	text, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("record the state of the update: %w", err)
	}
	p := podPatch{Metadata: metadataChanges(u.Pod, u.Want, u.Hashes, template.RecordOf(u.Pod))}
	p.Metadata.ResourceVersion = u.ResourceVersion
	p.Metadata.annotate(tappv1.AnnotationInPlaceState, string(text))
	if len(spec.Containers)+len(spec.InitContainers) > 0 {
		p.Spec = spec
	}
	patch, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the patch of an in-place update: %w", err)
	}
	return patch, nil
}

// restarts are the containers that the kubelet restarts because of the patch.
func (u Update) restarts(spec *specPatch) (out []container) {
	for _, c := range containersOf(u.Pod) {
		if image, ok := spec.imageOf(c); ok && image != c.Image && c.restarts() && !c.ended(u.Pod.Spec.RestartPolicy) {
			out = append(out, c)
		}
	}
	return out
}

// CheckContainers says why a pod cannot be brought to a template in place: it lacks a
// container.
func CheckContainers(pod *corev1.Pod, t *corev1.PodTemplateSpec) error {
	for _, lists := range [2]struct {
		field      string
		have, want []corev1.Container
	}{{"initContainers", pod.Spec.InitContainers, t.Spec.InitContainers}, {"containers", pod.Spec.Containers, t.Spec.Containers}} {
		for i := range lists.want {
			if indexOf(lists.have, lists.want[i].Name) < 0 {
				return missingContainer(lists.field, lists.want[i].Name)
			}
		}
	}
	return nil
}

func missingContainer(field, name string) error {
	return fmt.Errorf("spec.%s[%s]: %w", field, name, ErrContainerMissing)
}

// indexOf the container of that name, or -1.
func indexOf(list []corev1.Container, name string) int {
	for i := range list {
		if list[i].Name == name {
			return i
		}
	}
	return -1
}

// imagesPatch holds the images that the template changed.
func imagesPatch(pod *corev1.Pod, want *corev1.PodSpec) (*specPatch, error) {
	var p specPatch
	var err error
	last := template.RecordOf(pod)
	if p.InitContainers, err = imagePatches(last, "initContainers", pod.Spec.InitContainers, want.InitContainers); err != nil {
		return nil, err
	}
	if p.Containers, err = imagePatches(last, "containers", pod.Spec.Containers, want.Containers); err != nil {
		return nil, err
	}
	return &p, nil
}

func imagePatches(last *template.Record, field string, have, want []corev1.Container) ([]imagePatch, error) {
	var patches []imagePatch
	for i := range want {
		at := indexOf(have, want[i].Name)
		if at < 0 {
			return nil, missingContainer(field, want[i].Name)
		}
		if last.ChangesImage(&have[at], &want[i]) {
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
