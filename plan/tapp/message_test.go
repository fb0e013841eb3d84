package tapp

import (
	"strings"
	"testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/message"
)

// TestMessageIsBounded: a condition is stored whoever wrote its message, and however long it is.
func TestMessageIsBounded(t *testing.T) {
	text := strings.Repeat("x", 40_000)
	var s tappv1.TAppStatus
	m := &summary{spec: &spec{tapp: &tappv1.TApp{}}, clock: &clock{}}
	m.set(&s, tappv1.ConditionReady, false, "Reason", text)
	if got := s.Conditions[0].Message; got != message.Bound(text) || len(got) >= len(text) {
		t.Errorf("the message has %d bytes", len(got))
	}
}
