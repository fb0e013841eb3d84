package inplace

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// StampPatch is a strategic merge patch that writes only our labels and annotations: the
// pod is what want is otherwise, or what others made of that.
func StampPatch(pod, want *corev1.Pod, h template.Hashes) ([]byte, error) {
	bare := *want
	bare.Labels, bare.Annotations = maps.Clone(want.Labels), maps.Clone(want.Annotations)
	for _, m := range [2]map[string]string{bare.Labels, bare.Annotations} {
		maps.DeleteFunc(m, func(key, _ string) bool { return !template.IsOurKey(key) })
	}
	return marshalMetadata(metadataChanges(pod, &bare, h, &template.Record{})) // of which nothing leaves
}

// RelabelPatch is a strategic merge patch that brings a pod's labels, annotations
// and hashes to want's; nil when they are. It changes nothing that runs.
func RelabelPatch(pod, want *corev1.Pod, h template.Hashes) ([]byte, error) {
	m := metadataChanges(pod, want, h, template.RecordOf(pod))
	if made := pod.Annotations[tappv1.AnnotationKept]; made != "" && made == pod.Labels[tappv1.LabelTemplateHash] && made != h.Template {
		m.annotate(tappv1.AnnotationKept, h.Template) // it runs the content that it was made with
	}
	return marshalMetadata(m)
}

func marshalMetadata(m metaPatch) ([]byte, error) {
	if len(m.Labels)+len(m.Annotations) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(podPatch{Metadata: m})
	if err != nil {
		return nil, fmt.Errorf("write the patch of a pod's metadata: %w", err)
	}
	return patch, nil
}

// metadataChanges sets what want has and the last template had not, and removes what the
// last template had and want has not. want carries all of ours that must stay.
func metadataChanges(pod, want *corev1.Pod, h template.Hashes, last *template.Record) metaPatch {
	m := metaPatch{
		Target:      Target{UID: pod.UID},
		Labels:      mapChanges(pod.Labels, want.Labels, last.Labels, last.HasLabel),
		Annotations: mapChanges(pod.Annotations, want.Annotations, last.Annotations, last.HasAnnotation),
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

// mapChanges leaves alone what the last template had with the same value, whatever the
// pod has now.
func mapChanges(have, want map[string]string, fromTemplate []string, had func(key, value string) bool) map[string]*string {
	changes := map[string]*string{}
	for key, value := range want {
		old, ok := have[key]
		if ok && (old == value || template.IsNodeKey(key)) || !template.IsOurKey(key) && had(key, value) {
			continue
		}
		changes[key] = &value
	}
	for _, key := range fromTemplate {
		_, has := have[key]
		_, wanted := want[key]
		if has && !wanted && !template.IsOurKey(key) && !template.IsNodeKey(key) {
			changes[key] = nil
		}
	}
	return changes
}

func (m *metaPatch) annotate(key, value string) { m.Annotations[key] = &value }
