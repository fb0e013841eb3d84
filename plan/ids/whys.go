package ids

import (
	"fmt"
	"strings"
)

// Whys are sentences, each about some instances.
type Whys struct {
	order []string
	about map[string][]int
}

// Add an instance to those that a sentence is about; no sentence: nothing is added.
func (w *Whys) Add(why string, id int) {
	if why == "" {
		return
	}
	if w.about == nil {
		w.about = map[string][]int{}
	}
	if w.about[why] == nil {
		w.order = append(w.order, why)
	}
	w.about[why] = append(w.about[why], id)
}

// Texts are the sentences with their instances, such as "instances 0-1: ...", in the order
// in which they came.
func (w *Whys) Texts() []string {
	var out []string
	for _, why := range w.order {
		out = append(out, Instances(w.about[why])+": "+why)
	}
	return out
}

// Tail continues a sentence by the first of them, and counts the rest: "; instance 1: ...;
// and 3 reasons more".
func (w *Whys) Tail(most int) string {
	texts := w.Texts()
	if more := len(texts) - most; more > 0 {
		texts = append(texts[:most], fmt.Sprintf("and %d reasons more", more))
	}
	return strings.Join(append([]string{""}, texts...), "; ")
}
