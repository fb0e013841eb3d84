package health

import (
	"testing"
	"time"
)

// TestOutdated: a member that goes Offline by time alone, in the very moment in which its
// watch listed, has to be listed again when it answers.
func TestOutdated(t *testing.T) {
	began := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	silent, well := Result{Outcome: Silent}, Result{}
	var m Machine
	m.Probed(at(0), at(0), well)
	m.Listed(at(1), well)
	for i := range 3 {
		m.Probed(at(5+3*i), at(5+3*i), silent)
	}
	if m.Outdated(at(1)) {
		t.Error("it is outdated before it is Offline")
	}
	m.Listed(at(21), well) // by a watch that went on; OfflineAfter has passed
	if state, _, _ := m.State(at(21)); state != Offline || m.Outdated(at(1)) {
		t.Errorf("it is %s, and outdated while nobody answers: %t", state, m.Outdated(at(1)))
	}
	m.Probed(at(22), at(22), well)
	if !m.Outdated(at(1)) {
		t.Error("nobody lists it again")
	}
	if m.Outdated(at(22)) {
		t.Error("a watch that began later is given up")
	}
	m.Listed(at(23), well)
	if m.Outdated(at(1)) {
		t.Error("it was listed, and is to be listed again")
	}
}
