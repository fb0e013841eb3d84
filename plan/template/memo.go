package template

import (
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Memo remembers records of pods, and which images are copies. The zero value knows none.
type Memo struct {
	// images says of pairs of references whether the first is a copy of the second.
	images map[[2]string]bool
	// records of the templates that pods were made from, by the text of their annotation,
	// which all pods of a template share, and that of pods of other programs.
	records map[string]*Record
	foreign *Record
}

// RecordOf a pod is what its template said. Of a pod of another program nothing is known.
func (m *Memo) RecordOf(pod *corev1.Pod) *Record {
	if !IsOurs(pod.Labels[tappv1.LabelTemplateHash]) {
		if m.foreign == nil {
			m.foreign = NoRecord(m.isCopy)
		}
		return m.foreign
	}
	text := pod.Annotations[tappv1.AnnotationTemplateKeys]
	r, known := m.records[text]
	if !known {
		r = ReadRecord(text)
		if m.records == nil {
			m.records = map[string]*Record{}
		}
		m.records[text] = r
	}
	return r.of(pod)
}

// isCopy is IsCopy.
func (m *Memo) isCopy(image, of string) bool {
	if image == of {
		return true
	}
	pair := [2]string{image, of}
	is, known := m.images[pair]
	if !known {
		is = IsCopy(image, of)
		if m.images == nil {
			m.images = map[[2]string]bool{}
		}
		m.images[pair] = is
	}
	return is
}
