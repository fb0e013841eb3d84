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
	if len(texts) == 0 {
		return
	}
	if more := len(texts) - maxWarnings; more > 0 {
		texts = append(slices.Clone(texts[:maxWarnings]), fmt.Sprintf("and %d more", more))
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
