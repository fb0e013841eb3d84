package certs

import (
	"testing"
	"time"
)

// TestEphemeral: one certificate for all handshakes, for the names, until it gets old.
func TestEphemeral(t *testing.T) {
	e := &ephemeral{names: []string{"localhost", "127.0.0.1"}}
	first, err := e.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range e.names {
		if err := first.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if again, err := e.GetCertificate(nil); err != nil || again != first {
		t.Errorf("another certificate: %v", err)
	}
	if e.current, err = selfSigned(e.names, time.Now().Add(-61*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	old := e.current
	if next, err := e.GetCertificate(nil); err != nil || next == old {
		t.Errorf("an old certificate stays: %v", err)
	}
	if !e.Healthy() || !Ephemeral("localhost").Ready() {
		t.Error("it is not ready")
	}
}
