package engine

import "slices"

// maxWarnings bounds what a chart may have said about it.
const maxWarnings = 16

// warnings are sentences, each once.
type warnings struct{ said []string }

func (w *warnings) add(sentence string) {
	if len(w.said) < maxWarnings && !slices.Contains(w.said, sentence) {
		w.said = append(w.said, sentence)
	}
}

func (w *warnings) sorted() []string {
	slices.Sort(w.said)
	return w.said
}
