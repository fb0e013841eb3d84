package fleet

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// While somebody asks who answers, a request waits no longer than it may: the probe of a
// member that is silent ends in time, and so does what waits for it.
func TestGateWaitsNoLongerThanARequestMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(func(context.Context, string, string) (net.Conn, error) { return nil, errUnverified })
		g.next = roundTripper(func(*http.Request) (*http.Response, error) { return nil, errUnverified })
		g.verify = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		asking, stop := context.WithCancel(t.Context())
		go func() { _ = g.ask(asking, 0) }()
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), probeTimeout)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://one.example/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := g.RoundTrip(r)
		if err == nil {
			_ = response.Body.Close()
		}
		if waited := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || waited != probeTimeout {
			t.Errorf("%v after %v, want the end of its time after %v", err, waited, probeTimeout)
		}
		stop()
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
