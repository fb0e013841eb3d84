package inplace

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// RelabelPatch is a strategic merge patch that brings a pod's labels, annotations
// and hashes to want's; nil when they are. It changes nothing that runs.
func RelabelPatch(pod, want *corev1.Pod, h template.Hashes) ([]byte, error) {
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

// metadataChanges sets what want has, and removes what the pod has from its last
// template and want has not. want carries everything that must stay.
func metadataChanges(pod, want *corev1.Pod, h template.Hashes) metaPatch {
	var last template.Keys
	text, recorded := pod.Annotations[tappv1.AnnotationTemplateKeys]
	if json.Unmarshal([]byte(text), &last) != nil {
		last = template.Keys{} // malformed: nothing is known, so nothing is removed
	}
	m := metaPatch{
		Target:      Target{UID: pod.UID},
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
		if has && !wanted && !template.IsOurKey(key) {
			changes[key] = nil
		}
	}
	return changes
}

func (m *metaPatch) annotate(key, value string) { m.Annotations[key] = &value }
