package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api/access"
)

// TestHangingServer: an API server that takes requests and answers none, while its watches stay
// open, is told to streams that are open; what asks it anew gets 503, and nothing is left over.
func TestHangingServer(t *testing.T) {
	crowd := newCrowd(3)
	var hangs atomic.Bool
	release := make(chan struct{})
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			select {
			case <-r.Context().Done():
			case <-release:
			}
			return
		}
		crowd.ServeHTTP(w, r)
	}))
	a, err := New(t.Context(), Options{Config: &rest.Config{Host: back.URL}, Authenticator: access.Loopback{Token: "t"}, Authorizer: access.Loopback{},
		Limits: Limits{Pulse: 20 * time.Millisecond, Request: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	s := &streamsOf{crowd: crowd, api: a, front: httptest.NewServer(a)}
	defer func() {
		close(release)
		s.front.CloseClientConnections()
		s.front.Close()
		a.Close()
		back.CloseClientConnections()
		back.Close()
	}()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	response, err := s.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := read(response.Body, `"total":3`); err != nil {
		t.Fatal(err)
	}
	hangs.Store(true)
	if err := read(response.Body, `"degraded":"the API server cannot be asked: it does not answer in time","asOf":`); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]int{"/api/v1/namespaces/ns/tapps/big/instances": http.StatusOK, "/api/v1/namespaces/ns/tapps/big/history": http.StatusServiceUnavailable, "/api/v1/namespaces/ns/apps": http.StatusServiceUnavailable} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Header.Set("Authorization", "Bearer t")
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		if w.Code != code || !strings.Contains(w.Body.String(), "in time") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	hangs.Store(false)
	if err := read(response.Body, "data: {}"); err != nil {
		t.Fatal(err)
	}
	leave()
	if err := eventually(func() error {
		if n := a.streams.Count(); n > 0 {
			return errors.New("a stream is left")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
