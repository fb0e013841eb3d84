package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// mostFindings of one answer: a mistake may be in each of 10,000 entries.
const mostFindings = 20

// finding is one thing that a rule has against a TApp.
type finding struct {
	rule    string
	field   string
	kind    metav1.CauseType
	message string // with what is wrong, and what to do
	// key is equal for the same finding about the same value, whatever it says of
	// other fields.
	key string
}

func (f finding) String() string { return f.field + ": " + f.message }

// findings of a rule.
func findings(rule string, errs field.ErrorList) []finding {
	out := make([]finding, 0, len(errs))
	for _, e := range errs {
		value, err := json.Marshal(e.BadValue)
		if err != nil {
			value = []byte(fmt.Sprint(e.BadValue))
		}
		out = append(out, finding{rule: rule, field: e.Field, kind: metav1.CauseType(e.Type), message: e.ErrorBody(),
			key: strings.Join([]string{rule, e.Field, string(e.Type), string(value)}, "\x00")})
	}
	return out
}

// ratchet splits what is found in an update: what the stored object has too, in
// fields that the update leaves alone, does not block it.
func ratchet(found, before []finding) (fresh, old []finding) {
	for _, f := range found {
		if slices.ContainsFunc(before, func(b finding) bool { return b.key == f.key }) {
			old = append(old, f)
		} else {
			fresh = append(fresh, f)
		}
	}
	return fresh, old
}

// invalid is the status that the API server has for its own kinds: kubectl prints
// one line for each cause.
func invalid(name string, found []finding) metav1.Status {
	return invalidOf(tappv1.GroupVersionKind().GroupKind(), name, found)
}

// invalidOf is invalid for an object of any kind.
func invalidOf(kind schema.GroupKind, name string, found []finding) metav1.Status {
	more := 0
	if len(found) > mostFindings {
		more = len(found) - mostFindings
		found = found[:mostFindings]
	}
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Group: kind.Group, Kind: kind.Kind, Name: name},
	}
	lines := make([]string, 0, len(found)+1)
	for _, f := range found {
		lines = append(lines, f.String())
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: f.kind, Field: f.field, Message: f.message})
	}
	if more > 0 {
		last := finding{field: "spec", message: fmt.Sprintf("and %d more", more)}
		lines = append(lines, last.String())
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Field: last.field, Message: last.message})
	}
	status.Message = fmt.Sprintf("%s %q is invalid: %s", kind, name, strings.Join(lines, "; "))
	return status
}

// rulesOf names the rules that found something, each once.
func rulesOf(found []finding) []string {
	var out []string
	for _, f := range found {
		if !slices.Contains(out, f.rule) {
			out = append(out, f.rule)
		}
	}
	return out
}
