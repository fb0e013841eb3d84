// Package restart says which changes of a template ask for another pod, although a
// running pod could be given them: annotations by which people restart pods, and images
// of init containers, which run in new pods only. They are changes from the pod's record
// to the new template. The pod itself says nothing: others may have written to it.
//
// | the record has | an annotation of the patterns | the image of an init container |
// |---|---|---|
// | the same value | no | no |
// | another value | asks for another pod | asks for another pod |
// | the key, and no value (of an early version) | no, but when the template loses it | |
// | not this one | asks for another pod | no |
// | nothing, or the pod is another program's | no | no |
package restart

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// None is the single entry of restartOn that stands for no annotation.
const None = "None"

// Patterns of annotations that restartOn stands for. In a pattern * is any number of
// characters but /.
func Patterns(restartOn []string) []string {
	switch {
	case len(restartOn) == 0:
		return []string{"checksum/*", "*/checksum", "kubectl.kubernetes.io/restartedAt"}
	case len(restartOn) == 1 && restartOn[0] == None:
		return nil
	}
	return restartOn
}

// Annotations that match a pattern, in order, and that the template adds, changes or
// removes.
func Annotations(patterns []string, last *template.Record, t *corev1.PodTemplateSpec) (changed []string) {
	keys := slices.Concat(last.Annotations, slices.Collect(maps.Keys(t.Annotations)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if matches(patterns, key) && !template.IsOurKey(key) && !template.IsNodeKey(key) && last.ChangesAnnotation(key, t) {
			changed = append(changed, key)
		}
	}
	return changed
}

// matches says whether the key matches a pattern. A malformed one matches nothing.
func matches(patterns []string, key string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		is, err := path.Match(pattern, key)
		return is && err == nil
	})
}

// InitImages tells the images that the template changes, of init containers that do not
// keep running.
func InitImages(last *template.Record, t *corev1.PodTemplateSpec) (changes []string) {
	for i := range t.Spec.InitContainers {
		c := &t.Spec.InitContainers[i]
		image, known := last.Images[c.Name]
		if known && !template.IsSidecar(c) && !template.SameImage(image, c.Image) {
			changes = append(changes, fmt.Sprintf("image of init container %s from %s to %s", c.Name, image, c.Image))
		}
	}
	return changes
}

// Reasons of a restart.
const (
	ReasonAnnotation = "AnnotationChanged"
	ReasonInitImage  = "InitImageChanged"
)

// Judge judges changes by an update strategy. It remembers its verdicts: the pods of a
// template share one record, and many wait for the same change.
type Judge struct {
	strategy *tappv1.TAppUpdateStrategy
	patterns []string
	known    map[change]verdict
}

type change struct {
	last *template.Record
	t    *corev1.PodTemplateSpec
}

type verdict struct{ reason, why string }

// NewJudge judges by a strategy that has its defaults.
func NewJudge(s *tappv1.TAppUpdateStrategy) *Judge {
	return &Judge{strategy: s, patterns: Patterns(s.RestartOn), known: map[change]verdict{}}
}

// Asks says why a change from a record to a template asks for another pod: the reason, and
// a sentence. Both are empty where it does not.
func (j *Judge) Asks(last *template.Record, t *corev1.PodTemplateSpec) (reason, why string) {
	v, known := j.known[change{last, t}]
	if !known {
		v = j.judge(last, t)
		j.known[change{last, t}] = v
	}
	return v.reason, v.why
}

func (j *Judge) judge(last *template.Record, t *corev1.PodTemplateSpec) verdict {
	if j.strategy.InPlaceUpdate.Policy == tappv1.InPlaceOnly {
		return verdict{}
	}
	annotations := Annotations(j.patterns, last, t)
	var images []string
	if j.strategy.InPlaceUpdate.InitImages != tappv1.InitImagesNextStart {
		images = InitImages(last, t)
	}
	switch {
	case len(annotations) > 0:
		return verdict{ReasonAnnotation, tell(annotations, images)}
	case len(images) > 0:
		return verdict{ReasonInitImage, tell(nil, images)}
	}
	return verdict{}
}

// tell in a sentence that these changes ask for another pod.
func tell(annotations, images []string) string {
	var parts []string
	switch len(annotations) {
	case 0:
	case 1:
		parts = append(parts, "annotation "+annotations[0]+" changed, which asks for a restart")
	default:
		parts = append(parts, "annotations "+strings.Join(annotations, ", ")+" changed, which ask for a restart")
	}
	if len(images) > 0 {
		parts = append(parts, strings.Join(images, ", ")+", which runs in new pods only")
	}
	return strings.Join(parts, "; ")
}
