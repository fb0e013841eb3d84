package trial

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/message"
)

// ReasonUpdateRefused is the reason of the condition of a gate that opened again, because
// the update for which it was closed was refused. It stays until the next one.
const ReasonUpdateRefused = "UpdateRefused"

// The message of that condition, which a new leader reads.
const (
	ofTemplate = "the update to template hash "
	wasRefused = " was refused, in a row: "
	separator  = "; "
)

// Message of the gate's condition after a refusal.
func Message(hash string, r Refusal) string {
	return ofTemplate + hash + wasRefused + fmt.Sprint(r.Times) + separator + message.Quote(r.Words)
}

// ReadGate reads what an open gate tells of a refusal, and of which template's update.
func ReadGate(pod *corev1.Pod) (hash string, r Refusal, told bool) {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != tappv1.GateInPlaceUpdate || c.Status != corev1.ConditionTrue || c.Reason != ReasonUpdateRefused {
			continue
		}
		text, ofOne := strings.CutPrefix(c.Message, ofTemplate)
		hash, text, refused := strings.Cut(text, wasRefused)
		times, words, counted := strings.Cut(text, separator)
		n, err := strconv.Atoi(times)
		if !ofOne || !refused || !counted || err != nil || n < 1 {
			return "", Refusal{}, false
		}
		return hash, Refusal{At: c.LastTransitionTime.Time, Times: n, Words: words, Pod: pod.Name}, true
	}
	return "", Refusal{}, false
}
