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
	// key is equal for findings about the same value of the same field, even if
	// their messages differ, which may tell of other fields.
	key string
}

func (f Finding) String() string { return f.Field + ": " + f.Message }

// Findings of a rule, from errors of fields.
func Findings(rule string, errs field.ErrorList) []Finding {
	out := make([]Finding, 0, len(errs))
	for _, e := range errs {
		value, err := json.Marshal(e.BadValue)
		if err != nil {
			value = []byte(fmt.Sprint(e.BadValue))
		}
		out = append(out, Finding{Rule: rule, Field: e.Field, Type: metav1.CauseType(e.Type), Message: e.ErrorBody(),
			key: strings.Join([]string{rule, e.Field, string(e.Type), string(value)}, "\x00")})
	}
	return out
}

// ratchet splits the findings of an update: what the stored object has too, in a
// field that the update leaves alone, does not block it.
func ratchet(found, before []Finding) (fresh, old []Finding) {
	for _, f := range found {
		if slices.ContainsFunc(before, func(b Finding) bool { return b.key == f.key }) {
			old = append(old, f)
		} else {
			fresh = append(fresh, f)
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
