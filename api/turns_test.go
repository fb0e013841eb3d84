package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api/access"
)

// TestTurns: while the API server hangs, so many requests wait for it, of one caller, and of
// callers whom it was not asked about yet; more are refused at once. None keeps its turn.
func TestTurns(t *testing.T) {
	asked, hangs := make(chan struct{}), make(chan struct{})
	back := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	}))
	defer back.Close()
	knows := authenticatorFunc(func(ctx context.Context, r *http.Request) (*access.Caller, error) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if token == "unknown" {
			asked <- struct{}{}
			<-hangs
			return nil, apierrors.NewUnauthorized("nobody knows")
		}
		return &access.Caller{Name: token, Key: token}, nil
	})
	a, err := New(t.Context(), Options{Config: &rest.Config{Host: back.URL}, Authenticator: knows, Authorizer: access.Loopback{}, Limits: Limits{RequestsPerSecond: 2, Requests: 8, FailuresPerMinute: 100}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ask := func(token string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/namespaces/ns/appsets/web/events", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w
	}
	var waiting sync.WaitGroup
	fill := func(token string, n int) {
		for range n {
			waiting.Go(func() { ask(token) })
			<-asked
		}
	}
	refused := func(token, want string) {
		t.Helper()
		if w := ask(token); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), want) {
			t.Errorf("one more of %s: %d %s, want %s", token, w.Code, w.Body, want)
		}
	}
	fill("ann", 4)
	a.limits = access.NewRates(2, 100) // her next request is not too soon
	refused("ann", "ann has 4 requests open, which is the most that one caller may have")
	fill("unknown", 4)
	refused("joe", "8 requests are open, which is the most there may be")
	refused("unknown", "8 requests are open, which is the most there may be")
	close(hangs)
	waiting.Wait()
	if n := a.turns.Count(); n != 0 {
		t.Errorf("%d requests keep their turns", n)
	}
	for range 4 {
		if _, err := a.turns.Begin(&access.Caller{Name: "ann", Key: "ann"}); err != nil {
			t.Errorf("a request of before keeps its turn: %v", err)
		}
	}
}

type authenticatorFunc func(ctx context.Context, r *http.Request) (*access.Caller, error)

func (f authenticatorFunc) Authenticate(ctx context.Context, r *http.Request) (*access.Caller, error) {
	return f(ctx, r)
}
