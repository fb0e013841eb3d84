package rule

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxFindings of one answer: a mistake may be in each of 10,000 entries.
const maxFindings = 20

// Finding is one thing that a rule has against an object.
type Finding struct {
	Rule    string
	Field   string
	Type    metav1.CauseType
	Message string // what is wrong, and what to do
}

func (f Finding) String() string { return f.Field + ": " + f.Message }

// Findings of a rule, from errors of fields. Those beyond maxFindings only count:
// nobody is told what they say.
func Findings(rule string, errs field.ErrorList) []Finding {
	out := make([]Finding, len(errs))
	for i, e := range errs {
		out[i].Rule = rule
		if i < maxFindings {
			out[i].Field, out[i].Type, out[i].Message = e.Field, metav1.CauseType(e.Type), e.ErrorBody()
		}
	}
	return out
}

// place of an error: equal for errors about the same value of the same field, even
// if their messages differ, which may tell of other fields.
type place struct {
	field, value string
	why          field.ErrorType
}

func placeOf(e *field.Error) place {
	value, err := json.Marshal(e.BadValue)
	if err != nil {
		value = []byte(fmt.Sprint(e.BadValue))
	}
	return place{e.Field, string(value), e.Type}
}

// ratchet splits what a rule has against an update: what it has against the stored
// object too, in a field that the update leaves alone, does not block it.
func ratchet(found, before field.ErrorList) (fresh, old field.ErrorList) {
	known := make(map[place]bool, len(before))
	for _, e := range before {
		known[placeOf(e)] = true
	}
	for _, e := range found {
		if known[placeOf(e)] {
			old = append(old, e)
		} else {
			fresh = append(fresh, e)
		}
	}
	return fresh, old
}

// Invalid is the status that the API server has for its own kinds: kubectl prints
// one line for each cause.
func Invalid(kind schema.GroupKind, name string, found []Finding) metav1.Status {
	more := 0
	if len(found) > maxFindings {
		more = len(found) - maxFindings
		found = found[:maxFindings]
	}
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Group: kind.Group, Kind: kind.Kind, Name: name},
	}
	lines := make([]string, 0, len(found)+1)
	for _, f := range found {
		lines = append(lines, f.String())
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: f.Type, Field: f.Field, Message: f.Message})
	}
	if more > 0 {
		last := Finding{Field: "spec", Message: fmt.Sprintf("and %d more", more)}
		lines = append(lines, last.String())
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Field: last.Field, Message: last.Message})
	}
	status.Message = fmt.Sprintf("%s %q is invalid: %s", kind, name, strings.Join(lines, "; "))
	return status
}

// Names of the rules that found something, each once.
func Names(found []Finding) []string {
	var out []string
	for _, f := range found {
		if !slices.Contains(out, f.Rule) {
			out = append(out, f.Rule)
		}
	}
	return out
}
