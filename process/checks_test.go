package process

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestChecks: they come and go, and those of clusters are listed and do not count.
func TestChecks(t *testing.T) {
	var checks Checks
	var unready error
	h := Endpoints(nil, Health{Ready: func() error { return unready }, Checks: &checks})
	fine, bad := func() error { return nil }, func() error { return errors.New("cannot") }
	for _, c := range []struct {
		name   string
		change func()
		path   string
		code   int
		body   string // without blanks
	}{
		{"none", func() {}, "/live", 200, "{}"},
		{"none are listed", func() {}, "/live?full=true", 200, "{}"},
		{"the process itself", func() {}, "/ready?full=true", 200, `{"process":"OK"}`},
		{"one that fails", func() { checks.AddLivenessCheck("disk", bad) }, "/live", 503, "{}"},
		{"its words", func() {}, "/live?full=true", 503, `{"disk":"cannot"}`},
		{"its words, as the originals were asked", func() {}, "/live?full=1", 503, `{"disk":"cannot"}`},
		{"liveness is not readiness", func() {}, "/ready", 200, "{}"},
		{"replaced", func() { checks.AddLivenessCheck("disk", fine) }, "/live?full=true", 200, `{"disk":"OK"}`},
		{"taken away", func() { checks.RemoveLivenessCheck("disk"); checks.RemoveLivenessCheck("disk") }, "/live?full=true", 200, "{}"},
		{"a cluster is away", func() { checks.AddListedCheck("cluster gz01", bad) }, "/ready?full=true", 200, `{"clustergz01":"cannot","process":"OK"}`},
		{"nor does it harm liveness", func() {}, "/live?full=true", 200, "{}"},
		{"readiness", func() { checks.AddReadinessCheck("caches", bad) }, "/ready?full=true", 503, `{"caches":"cannot","clustergz01":"cannot","process":"OK"}`},
		{"readiness is not liveness", func() {}, "/live", 200, "{}"},
		{"all went", func() { checks.RemoveReadinessCheck("caches"); checks.RemoveListedCheck("cluster gz01") }, "/ready?full=true", 200, `{"process":"OK"}`},
		{"the process is not", func() { unready = errors.New("starting") }, "/ready?full=true", 503, `{"process":"starting"}`},
	} {
		c.change()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		if body := strings.Join(strings.Fields(w.Body.String()), ""); w.Code != c.code || body != c.body || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			t.Errorf("%s: got %d and %s, want %d and %s", c.name, w.Code, body, c.code, c.body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/ready", nil))
	if w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
}
