// Package rule judges objects by rules. It knows no kind.
//
//	rule     what it gives         effect
//	Judge    findings              deny; those that the stored object has too only warn (ratchet)
//	Compare  findings of a change  deny
//	Advise   sentences             warn
//
// A finding is the path of a field and a sentence that says what to do.
package rule

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rule is one thing that objects of a kind have to keep to. Its functions get
// objects with their defaults, and change nothing. Each of them may be nil.
type Rule[T any] struct {
	// Name is a label of metrics.
	Name string
	// Judge finds what is wrong with an object as it is.
	Judge func(*T) field.ErrorList
	// Compare finds what is wrong with a change.
	Compare func(now, was *T) field.ErrorList
	// Advise tells of what is allowed, and worth a word. was is nil on creation.
	Advise func(now, was *T) []string
	// Alone ends the judgement where this rule denies: the rules behind it rely on it.
	Alone bool
}

// Rules of a kind, in the order in which they report.
type Rules[T any] []Rule[T]

// Named are the rules with these names.
func (rs Rules[T]) Named(names ...string) Rules[T] {
	return slices.DeleteFunc(slices.Clone(rs), func(r Rule[T]) bool { return !slices.Contains(names, r.Name) })
}

// Judge an object. The findings deny it. was is the stored object, nil on creation:
// what is wrong with it in the same way does not block an update, and becomes a
// warning. An error means that the context ended before all rules were gone through.
func (rs Rules[T]) Judge(ctx context.Context, now, was *T, w *Warnings) ([]Finding, error) {
	var denied []Finding
	for _, r := range rs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found := r.judge(now, was, w)
		denied = append(denied, found...)
		if r.Alone && len(found) > 0 {
			break
		}
	}
	return denied, nil
}

func (r Rule[T]) judge(now, was *T, w *Warnings) []Finding {
	var found field.ErrorList
	if r.Judge != nil {
		found = r.Judge(now)
	}
	if r.Judge != nil && was != nil && len(found) > 0 {
		var old field.ErrorList
		found, old = ratchet(found, r.Judge(was))
		w.addSome(r.Name, len(old), func(i int) string {
			return fmt.Sprintf("%s: %s (this was so before, and does not block the update)", old[i].Field, old[i].ErrorBody())
		})
	}
	if r.Compare != nil && was != nil {
		found = append(found, r.Compare(now, was)...)
	}
	return Findings(r.Name, found)
}

// Advise adds the warnings of the rules.
func (rs Rules[T]) Advise(ctx context.Context, now, was *T, w *Warnings) {
	for _, r := range rs {
		if r.Advise != nil && ctx.Err() == nil {
			w.Add(r.Name, r.Advise(now, was)...)
		}
	}
}
