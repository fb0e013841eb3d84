package status

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPatch: only what differs, null for what is gone, and the UID.
func TestPatch(t *testing.T) {
	type status struct {
		A     int                `json:"a,omitempty"`
		B     string             `json:"b,omitempty"`
		Conds []metav1.Condition `json:"conditions,omitempty"`
	}
	got, err := Patch("u", &status{A: 1, B: "same"}, &status{B: "same", Conds: []metav1.Condition{{Type: "Ready"}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"uid":"u"},"status":{"a":null,"conditions":[{"message":"","reason":"","status":"","type":"Ready"}]}}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
