package process

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestEndpoints(t *testing.T) {
	var unhealthy, unready error
	registry := prometheus.NewRegistry()
	NewMetrics(registry, "v1.2.3")
	h := Endpoints(registry, Health{Healthy: func(*http.Request) error { return unhealthy }, Ready: func() error { return unready }})
	for _, c := range []struct {
		name               string
		unhealthy, unready error
		method, path       string
		code               int
		body               string // the beginning
	}{
		{"alive", nil, nil, "GET", "/healthz", 200, "ok\n"},
		{"alive, for who asks little", nil, nil, "HEAD", "/healthz", 200, ""},
		{"hanging", errors.New("the lease has expired"), nil, "GET", "/healthz", 500, "the lease has expired\n"},
		{"usable", nil, nil, "GET", "/readyz", 200, "ok\n"},
		{"starting", nil, errors.New("the caches are not filled yet"), "GET", "/readyz", 503, "the caches are not filled yet\n"},
		{"hanging, but usable", errors.New("the lease has expired"), nil, "GET", "/readyz", 200, "ok\n"},
		{"metrics", nil, nil, "GET", "/metrics", 200, "# HELP go_"},
		{"nothing else", nil, nil, "GET", "/debug/pprof", 404, "404 page not found\n"},
		{"no writes", nil, nil, "POST", "/healthz", 405, ""},
	} {
		unhealthy, unready = c.unhealthy, c.unready
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.code || !strings.HasPrefix(w.Body.String(), c.body) {
			t.Errorf("%s: got %d and %.60q, want %d and %q", c.name, w.Code, w.Body, c.code, c.body)
		}
	}
}

// TestServeEndsInOrder: a request that is under way when the end comes is answered.
func TestServeEndsInOrder(t *testing.T) {
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	parts := NewParts(t.Context())
	parts.Run(func(context.Context) error {
		return Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			waitUntilRefused(r.Context(), listener.Addr().String())
			ok(w)
		}))
	})
	response, err := http.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "ok\n" {
		t.Errorf("got %q and error %v", body, err)
	}
	_ = response.Body.Close()
	if err := parts.Wait(); err != nil {
		t.Error(err)
	}
}

func waitUntilRefused(ctx context.Context, address string) {
	for ctx.Err() == nil {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		_ = c.Close()
	}
}

func TestListen(t *testing.T) {
	if l, err := Listen(""); l != nil || err != nil {
		t.Errorf("nowhere: got %v, %v", l, err)
	}
	first, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if _, err := Listen(first.Addr().String()); err == nil || !strings.HasPrefix(err.Error(), "listening for metrics and health: ") {
		t.Errorf("a port in use: got error %v", err)
	}
}

// TestPartsEndTogether: the first one to end ends the others, and no error is lost.
func TestPartsEndTogether(t *testing.T) {
	parts := NewParts(t.Context())
	parts.Run(func(ctx context.Context) error { <-ctx.Done(); return errors.New("b") })
	parts.Run(func(ctx context.Context) error { <-ctx.Done(); return nil })
	parts.Run(func(context.Context) error { return nil })
	if err := parts.Wait(); err == nil || err.Error() != "b" {
		t.Errorf("got error %v, want b", err)
	}
}
