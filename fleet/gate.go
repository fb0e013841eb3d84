package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// errUnverified: a request would need a connection of which nobody knows where it leads.
var errUnverified = errors.New("it is not known who answers")

// verifyTries bounds how often a request may lose its connection before it is sent.
const verifyTries = 5

// gate is a transport whose connections are made only to ask who answers on them, and
// closed if that is somebody else. All other requests go over those that are left, or
// wait for one: behind an address that has come to be another cluster's nothing is
// written, and nothing of it is read.
type gate struct {
	next   http.RoundTripper
	verify func(context.Context) error
	dials  func(ctx context.Context, network, address string) (net.Conn, error)

	// using has a place for each request while it is begun, and all places are taken while
	// a new connection is asked about. Who waits for one waits no longer than its request may.
	using *semaphore.Weighted

	mu    sync.Mutex
	open  bool // connections may be made
	asked int  // how often was asked
	good  int  // the last time that the answer was right
	conns map[*gated]struct{}
}

// allPlaces is more than there are requests at once.
const allPlaces = 1 << 30

func newGate(dials func(ctx context.Context, network, address string) (net.Conn, error)) *gate {
	return &gate{dials: dials, using: semaphore.NewWeighted(allPlaces), conns: map[*gated]struct{}{}}
}

// asking marks the requests of verify.
type asking struct{}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Value(asking{}) != nil {
		return g.send(r)
	}
	for try := 1; ; try++ {
		g.mu.Lock()
		asked := g.asked
		g.mu.Unlock()
		response, err := g.begin(r)
		if !errors.Is(err, errUnverified) || try == verifyTries {
			return response, err
		}
		if err := g.ask(r.Context(), asked); err != nil {
			return nil, err
		}
		if r.GetBody != nil { // the body was closed, and never sent
			body, err := r.GetBody()
			if err != nil {
				return nil, fmt.Errorf("sending a request again: %w", err)
			}
			r = r.Clone(r.Context())
			r.Body = body
		}
	}
}

// begin a request, unless somebody asks who answers.
func (g *gate) begin(r *http.Request) (*http.Response, error) {
	if err := g.using.Acquire(r.Context(), 1); err != nil {
		return nil, err
	}
	defer g.using.Release(1)
	return g.send(r)
}

func (g *gate) send(r *http.Request) (*http.Response, error) {
	response, err := g.next.RoundTrip(r)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest {
		_ = response.Body.Close()
		return nil, errRedirect
	}
	return response, err
}

// ask who answers, unless somebody else did since.
func (g *gate) ask(ctx context.Context, since int) error {
	if err := g.using.Acquire(ctx, allPlaces); err != nil {
		return err
	}
	defer g.using.Release(allPlaces)
	g.mu.Lock()
	if g.good > since {
		g.mu.Unlock()
		return nil
	}
	g.open = true
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, asking{}, true), requestTimeout)
	defer cancel()
	known := false // also if asking panics
	defer func() {
		g.mu.Lock()
		g.open = false
		g.asked++
		if known {
			g.good = g.asked
		}
		g.mu.Unlock()
		if !known {
			g.close()
		}
	}()
	err := g.verify(ctx)
	known = err == nil
	return err
}

// dial makes a connection while somebody asks. One that is made too late is closed:
// nobody asked on it.
func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	open, asked := g.open, g.asked
	g.mu.Unlock()
	if !open {
		return nil, errUnverified
	}
	conn, err := g.dials(ctx, network, address)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked != asked {
		_ = conn.Close()
		return nil, errUnverified
	}
	c := &gated{Conn: conn, gate: g}
	g.conns[c] = struct{}{}
	return c, nil
}

// close all connections, those in use too.
func (g *gate) close() {
	g.mu.Lock()
	conns := g.conns
	g.conns = map[*gated]struct{}{}
	g.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close()
	}
	g.closeIdle()
}

func (g *gate) closeIdle() { utilnet.CloseIdleConnectionsFor(g.next) }

// WrappedRoundTripper lets client-go find the transport inside.
func (g *gate) WrappedRoundTripper() http.RoundTripper { return g.next }

// gated is a connection that a gate knows.
type gated struct {
	net.Conn
	gate *gate
}

func (c *gated) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}
