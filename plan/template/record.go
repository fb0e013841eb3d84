package template

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Record is what the template of a pod said of all that can change in place. It is kept
// in the pod's annotation AnnotationTemplateKeys. An update compares three things: the
// record, the new template, and the pod. It changes what the template changed, and
// leaves alone what admission or an agent of the node made of the rest.
//
// | the record | the pod gets what the template says |
// |---|---|
// | has another value, or lacks it | yes |
// | has the same value | no, whatever the pod has |
// | none, or of an earlier version | where the pod has something else |
// | none, and the pod is another program's | where that is no mirror's copy of the image (see IsCopy) |
// | any, and somebody overwrote the image | where the pod has something else (see Overwritten) |
//
// Resources change in place only where the user asked for it, see ResourceSet.
type Record struct {
	// Labels and Annotations are the keys that came from the template, in order.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	// LabelDigests and AnnotationDigests are the digests of their values, in the same
	// order.
	LabelDigests      []string `json:"labelDigests,omitempty"`
	AnnotationDigests []string `json:"annotationDigests,omitempty"`
	// Images of containers and initContainers, by name.
	Images map[string]string `json:"images,omitempty"`
	// Resources of containers and initContainers that have any, by name: the requests of cpu
	// and memory, and their limits, such as 100m,1Gi,,2Gi.
	Resources map[string]string `json:"resources,omitempty"`

	// copies is IsCopy for pods of another program, otherwise nil.
	copies func(image, of string) bool
	// overwritten are the containers of the pod whose image somebody overwrote.
	overwritten []string
}

// RecordOf a pod. Of a pod whose hash is another program's, which may have changed the
// pod and left the record, only the keys are taken.
func RecordOf(pod *corev1.Pod) *Record {
	r := ReadRecord(pod.Annotations[tappv1.AnnotationTemplateKeys])
	if !IsOurs(pod.Labels[tappv1.LabelTemplateHash]) {
		return &Record{Labels: r.Labels, Annotations: r.Annotations, copies: IsCopy}
	}
	return r.of(pod)
}

// of a pod: what its template said, and whose images somebody overwrote.
func (r *Record) of(pod *corev1.Pod) *Record {
	overwritten := Overwritten(pod)
	if len(overwritten) == 0 {
		return r
	}
	own := *r
	own.overwritten = overwritten
	return &own
}

// NoRecord is what is known of the images of a pod of another program.
func NoRecord(copies func(image, of string) bool) *Record { return &Record{copies: copies} }

// ReadRecord reads the annotation. A malformed one is as good as none.
func ReadRecord(text string) *Record {
	var r Record
	if text == "" || json.Unmarshal([]byte(text), &r) != nil {
		return &Record{}
	}
	return &r
}

// ChangesImage says whether the template gives the container of a pod another image.
func (r *Record) ChangesImage(has, want *corev1.Container) bool {
	if has.Image == want.Image {
		return false
	}
	if last, known := r.Images[want.Name]; known && !slices.Contains(r.overwritten, want.Name) {
		return last != want.Image
	}
	return r.copies == nil || !r.copies(has.Image, want.Image)
}

// HasLabel and HasAnnotation say whether the template had this label or annotation, with
// this value.
func (r *Record) HasLabel(key, value string) bool {
	return has(r.Labels, r.LabelDigests, key, value)
}

// HasAnnotation is HasLabel for annotations.
func (r *Record) HasAnnotation(key, value string) bool {
	return has(r.Annotations, r.AnnotationDigests, key, value)
}

// ChangesAnnotation says whether the template adds, changes or removes an annotation. It
// does not where that cannot be known: nothing is recorded, or the key without its value,
// as early versions did.
func (r *Record) ChangesAnnotation(key string, t *corev1.PodTemplateSpec) bool {
	value, wanted := t.Annotations[key]
	at := slices.Index(r.Annotations, key)
	switch {
	case r.copies != nil || len(r.Labels)+len(r.Images) == 0: // another program's, or nothing
		return false
	case at < 0 || !wanted:
		return at >= 0 || wanted
	}
	return at < len(r.AnnotationDigests) && r.AnnotationDigests[at] != Digest([]byte(value))
}

func has(keys, digests []string, key, value string) bool {
	at := slices.Index(keys, key)
	return at >= 0 && at < len(digests) && digests[at] == Digest([]byte(value))
}

// NewRecord is the record of a template.
func NewRecord(t *corev1.PodTemplateSpec) *Record {
	r := &Record{Images: map[string]string{}, Resources: map[string]string{}}
	r.Labels, r.LabelDigests = theirs(t.Labels)
	r.Annotations, r.AnnotationDigests = theirs(t.Annotations)
	for _, list := range [2][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range list {
			r.Images[list[i].Name] = list[i].Image
			if text := recordedResources(&list[i]); text != "" {
				r.Resources[list[i].Name] = text
			}
		}
	}
	return r
}

// MarshalRecord renders the record of a template. It goes into the annotation
// AnnotationTemplateKeys of its pods.
func MarshalRecord(t *corev1.PodTemplateSpec) string {
	text, err := json.Marshal(NewRecord(t))
	if err != nil {
		return "" // strings always marshal
	}
	return string(text)
}

// theirs are the keys that are not the controller's, and the digests of their values.
func theirs(m map[string]string) (keys, digests []string) {
	keys = slices.DeleteFunc(slices.Sorted(maps.Keys(m)), IsOurKey)
	for _, key := range keys {
		digests = append(digests, Digest([]byte(m[key])))
	}
	return keys, digests
}

// IsOurKey is true for labels and annotations that the controller writes.
func IsOurKey(key string) bool {
	switch key {
	case tappv1.LabelInstanceID, tappv1.LabelTemplateHash, tappv1.LabelUniqHash, tappv1.LabelPodIndex,
		tappv1.AnnotationInPlaceState, tappv1.AnnotationTemplateKeys, tappv1.AnnotationFailures, tappv1.AnnotationRestart, tappv1.AnnotationShapeHash, tappv1.AnnotationResized, tappv1.AnnotationKept, tappv1.AnnotationClaimMayGo:
		return true
	}
	return false
}

// IsNodeKey is true for annotations whose value an agent of the node writes, and which
// nothing sets back: Galaxy writes the host ports that it allocated into
// tkestack.io/portmapping, which is empty in templates.
func IsNodeKey(key string) bool { return key == tappv1.AnnotationPortMapping }
