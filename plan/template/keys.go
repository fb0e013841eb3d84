package template

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Keys is the value of the annotation AnnotationTemplateKeys.
type Keys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// MarshalKeys renders which labels and annotations come from a template; empty
// when none do. It goes into the annotation AnnotationTemplateKeys of its pods.
func MarshalKeys(t *corev1.PodTemplateSpec) string {
	keys := Keys{theirKeys(t.Labels), theirKeys(t.Annotations)}
	if len(keys.Labels)+len(keys.Annotations) == 0 {
		return ""
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return "" // strings always marshal
	}
	return string(text)
}

func theirKeys(m map[string]string) []string {
	keys := slices.Sorted(maps.Keys(m))
	return slices.DeleteFunc(keys, IsOurKey)
}

// IsOurKey is true for labels and annotations that the controller writes.
func IsOurKey(key string) bool {
	switch key {
	case tappv1.LabelInstanceID, tappv1.LabelTemplateHash, tappv1.LabelUniqHash, tappv1.LabelPodIndex,
		tappv1.AnnotationInPlaceState, tappv1.AnnotationTemplateKeys, tappv1.AnnotationFailures, tappv1.AnnotationRestart, tappv1.AnnotationShapeHash, tappv1.AnnotationResized:
		return true
	}
	return false
}
