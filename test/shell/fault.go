//go:build cluster

package shell

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

var errCut = errors.New("the test cut the connection")

// transport is a function that is one.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// isWrite says whether a request changes something that tests are about: leases
// are renewed all the time.
func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases")
}

func isPodWatch(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("watch") == "true"
}

// crash lets k writes through; the answer to the last one and everything after it
// is lost, as when the process dies.
type crash struct {
	k       int64
	writes  atomic.Int64
	crashed chan struct{}
	once    sync.Once
}

func newCrash(k int) *crash { return &crash{k: int64(k), crashed: make(chan struct{})} }

func (c *crash) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if !isWrite(r) {
			select {
			case <-c.crashed:
				return nil, errCut
			default:
				return next.RoundTrip(r)
			}
		}
		n := c.writes.Add(1)
		if n > c.k {
			return nil, errCut
		}
		response, err := next.RoundTrip(r)
		if n < c.k {
			return response, err
		}
		c.once.Do(func() { close(c.crashed) })
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, errCut
	})
}

// link is a connection that can be cut, watches included.
type link struct {
	cut atomic.Bool

	mu     sync.Mutex
	bodies map[*cutBody]bool
}

func newLink() *link { return &link{bodies: map[*cutBody]bool{}} }

func (l *link) set(cut bool) {
	l.cut.Store(cut)
	if !cut {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := range l.bodies {
		_ = b.ReadCloser.Close()
		delete(l.bodies, b)
	}
}

func (l *link) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if l.cut.Load() {
			return nil, errCut
		}
		response, err := next.RoundTrip(r)
		if err != nil || r.Method != http.MethodGet {
			return response, err
		}
		b := &cutBody{ReadCloser: response.Body, link: l}
		l.mu.Lock()
		l.bodies[b] = true
		l.mu.Unlock()
		response.Body = b
		return response, nil
	})
}

type cutBody struct {
	io.ReadCloser
	link *link
}

func (b *cutBody) Close() error {
	b.link.mu.Lock()
	delete(b.link.bodies, b)
	b.link.mu.Unlock()
	return b.ReadCloser.Close()
}

// stall holds back what watches of pods bring, while it is on: a cache that falls
// behind without noticing.
type stall struct {
	mu sync.Mutex
	on bool
	c  sync.Cond
}

func newStall() *stall {
	s := &stall{}
	s.c.L = &s.mu
	return s
}

func (s *stall) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
	s.c.Broadcast()
}

func (s *stall) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && isPodWatch(r) {
			response.Body = &stalledBody{ReadCloser: response.Body, stall: s}
		}
		return response, err
	})
}

type stalledBody struct {
	io.ReadCloser
	stall *stall
}

func (b *stalledBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.stall.mu.Lock()
	defer b.stall.mu.Unlock()
	for b.stall.on {
		b.stall.c.Wait()
	}
	return n, err
}

// refuse answers some requests in the API server's place.
func refuse(which func(*http.Request) bool, code int, status string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if !which(r) {
				return next.RoundTrip(r)
			}
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
				Body: io.NopCloser(strings.NewReader(status))}, nil
		})
	}
}
