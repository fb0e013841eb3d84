package appset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestLife: created with one write of the hub before all parts, nothing at rest, and
// deleted without a trace.
func TestLife(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.must()
	w.expect("PATCH appset, PATCH status", map[string]string{"one": "Apply", "two": "Apply"})
	if w.phase() != v1beta1.PhaseInstalling {
		t.Errorf("phase %s", w.phase())
	}
	w.catchUp()
	w.must()
	w.expect("", nil)
	w.app.DeletionTimestamp = new(metav1.Now())
	w.must()
	w.expect("", map[string]string{"one": "Delete", "two": "Delete"})
	for _, m := range w.members {
		m.live = nil
	}
	w.catchUp()
	w.must()
	w.expect("PATCH appset", map[string]string{"one": "Observe", "two": "Observe"})
	if w.app != nil {
		t.Error("it is still there")
	}
}
