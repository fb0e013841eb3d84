package rule

import (
	"fmt"
	"slices"
)

// maxWarnings of one call of Add. The API server cuts warnings short that have more
// than 4,096 characters together.
const maxWarnings = 8

// Warnings for the user, and the rules that they come from.
type Warnings struct {
	Texts []string
	Rules []string
}

// Add what a rule has to say; no texts: nothing.
func (w *Warnings) Add(rule string, texts ...string) {
	w.addSome(rule, len(texts), func(i int) string { return texts[i] })
}

// addSome adds what a rule has to say n times. What is only counted is not rendered:
// of many thousand findings that would take most of the time.
func (w *Warnings) addSome(rule string, n int, text func(i int) string) {
	texts := make([]string, 0, min(n, maxWarnings+1))
	for i := range min(n, maxWarnings) {
		texts = append(texts, text(i))
	}
	if more := n - maxWarnings; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	if n == 0 {
		return
	}
	w.Texts = append(w.Texts, texts...)
	if !slices.Contains(w.Rules, rule) {
		w.Rules = append(w.Rules, rule)
	}
}

// Append the warnings of other rules.
func (w *Warnings) Append(others Warnings) {
	w.Texts, w.Rules = append(w.Texts, others.Texts...), append(w.Rules, others.Rules...)
}
