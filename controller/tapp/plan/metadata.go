package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// RelabelPatch is a strategic merge patch that brings a pod's labels, annotations
// and hashes to want's; nil when they are. It changes nothing that runs.
func RelabelPatch(pod, want *corev1.Pod, h Hashes) ([]byte, error) {
	m := metadataChanges(pod, want, h)
	if len(m.Labels)+len(m.Annotations) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(podPatch{Metadata: m})
	if err != nil {
		return nil, fmt.Errorf("write the patch of a pod's metadata: %w", err)
	}
	return patch, nil
}

// templateKeys is the value of the annotation AnnotationTemplateKeys.
type templateKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// TemplateKeys renders which labels and annotations come from a template; empty
// when none do. It goes into the annotation AnnotationTemplateKeys of its pods.
func TemplateKeys(t *corev1.PodTemplateSpec) string {
	keys := templateKeys{theirKeys(t.Labels), theirKeys(t.Annotations)}
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
	return slices.DeleteFunc(keys, isOurKey)
}

// isOurKey is true for labels and annotations that the controller writes.
func isOurKey(key string) bool {
	switch key {
	case tappv1.LabelInstanceID, tappv1.LabelTemplateHash, tappv1.LabelUniqHash, tappv1.LabelPodIndex,
		tappv1.AnnotationInPlaceState, tappv1.AnnotationTemplateKeys, tappv1.AnnotationFailures, tappv1.AnnotationRestart, tappv1.AnnotationShapeHash, tappv1.AnnotationResized:
		return true
	}
	return false
}

// metadataChanges sets what want has, and removes what the pod has from its last
// template and want has not. want carries everything that must stay.
func metadataChanges(pod, want *corev1.Pod, h Hashes) metaPatch {
	var last templateKeys
	text, recorded := pod.Annotations[tappv1.AnnotationTemplateKeys]
	if json.Unmarshal([]byte(text), &last) != nil {
		last = templateKeys{} // malformed: nothing is known, so nothing is removed
	}
	m := metaPatch{
		UID:         pod.UID,
		Labels:      mapChanges(pod.Labels, want.Labels, last.Labels),
		Annotations: mapChanges(pod.Annotations, want.Annotations, last.Annotations),
	}
	if _, ok := want.Annotations[tappv1.AnnotationTemplateKeys]; recorded && !ok {
		m.Annotations[tappv1.AnnotationTemplateKeys] = nil
	}
	// The update writes its own record; one in a template is somebody's mistake.
	delete(m.Annotations, tappv1.AnnotationInPlaceState)
	for key, hash := range map[string]string{tappv1.LabelTemplateHash: h.Template, tappv1.LabelUniqHash: h.Uniq} {
		delete(m.Labels, key)
		if pod.Labels[key] != hash {
			m.Labels[key] = &hash
		}
	}
	return m
}

func mapChanges(have, want map[string]string, fromTemplate []string) map[string]*string {
	changes := map[string]*string{}
	for key, value := range want {
		if old, ok := have[key]; !ok || old != value {
			changes[key] = &value
		}
	}
	for _, key := range fromTemplate {
		_, has := have[key]
		_, wanted := want[key]
		if has && !wanted && !isOurKey(key) {
			changes[key] = nil
		}
	}
	return changes
}

func (m *metaPatch) annotate(key, value string) { m.Annotations[key] = &value }
