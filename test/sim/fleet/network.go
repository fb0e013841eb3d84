package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
)

var (
	errRefused = errors.New("connect: connection refused")
	errClosed  = errors.New("use of closed network connection")
)

// dialTimeout is how long a connection to a member that is cut off is waited for.
const dialTimeout = 5 * time.Second

// link is a connection of a process to a member.
type link struct {
	net.Conn
	to *cluster

	mu      sync.Mutex
	closed  chan struct{}
	isOpen  bool
	streams []*apiserver.Watch
}

// address lets who has a connection that wraps the link find it.
type address struct{ *link }

func (address) Network() string  { return "tcp" }
func (a address) String() string { return a.to.name + ".example:6443" }

// RemoteAddr implements net.Conn.
func (l *link) RemoteAddr() net.Addr { return address{l} }

// Close implements net.Conn.
func (l *link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isOpen {
		l.isOpen = false
		close(l.closed)
		for _, x := range l.streams {
			x.End()
		}
	}
	return nil
}

// carry a watch; one that is closed ends it.
func (l *link) carry(x *apiserver.Watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isOpen {
		x.End()
		return
	}
	l.streams = append(l.streams, x)
}

// nameOf the member that is at an address.
func nameOf(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

// Dial implements fleet.Network.
func (r *replica) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	name := nameOf(addr)
	c := r.world.members[name]
	switch {
	case r.IsDead() || c == nil || r.world.is(down, name):
		return nil, errRefused
	case r.world.isCut(name):
		select {
		case <-r.world.clock.After(dialTimeout):
			return nil, fmt.Errorf("dial tcp %s: i/o timeout", addr)
		case <-ctx.Done():
			time.Sleep(process.Lateness(addr)) //nolint:forbidigo // of virtual time
			return nil, ctx.Err()
		}
	}
	l := &link{to: c, closed: make(chan struct{}), isOpen: true}
	r.mu.Lock()
	r.links = append(r.links, l)
	r.mu.Unlock()
	return l, nil
}

// Transport implements fleet.Network.
func (r *replica) Transport(config *rest.Config) (http.RoundTripper, error) {
	host := strings.TrimPrefix(config.Host, "https://")
	return &wire{replica: r, host: host, token: config.BearerToken, dial: config.Dial}, nil
}

// wire is a transport to one host that has one connection at a time.
type wire struct {
	replica     *replica
	host, token string
	dial        func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	conn net.Conn
	busy int
}

// connection that is open, or a new one.
func (c *wire) connection(ctx context.Context) (*link, error) {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		if l := linkOf(conn); l.open() {
			return l, nil
		}
	}
	conn, err := c.dial(ctx, "tcp", c.host)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	return linkOf(conn), nil
}

func linkOf(conn net.Conn) *link { return conn.RemoteAddr().(address).link }

func (l *link) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isOpen
}

// CloseIdleConnections is asked for by its name.
func (c *wire) CloseIdleConnections() {
	c.mu.Lock()
	conn := c.conn
	idle := c.busy == 0
	c.mu.Unlock()
	if conn != nil && idle {
		_ = conn.Close()
	}
}

// RoundTrip implements http.RoundTripper.
func (c *wire) RoundTrip(h *http.Request) (*http.Response, error) {
	name, began := nameOf(c.host), time.Now()
	cut := c.replica.world.isCut(name)
	answer, err := c.roundTrip(h)
	took := wait{began, time.Now(), cut || c.replica.world.isCut(name)}
	if err == nil || took.to.After(took.from) || errors.Is(err, errRefused) || errors.Is(err, errClosed) { // or it never left
		c.replica.asked(name, process.KeyOf(h.Context()), took, err == nil && answer.StatusCode < http.StatusInternalServerError)
	}
	return answer, err
}

func (c *wire) roundTrip(h *http.Request) (*http.Response, error) {
	l, err := c.connection(h.Context())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.busy++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.busy--
		c.mu.Unlock()
	}()
	asked, err := apiserver.Read(h)
	if err != nil {
		return nil, err
	}
	return c.replica.ask(h, &request{Request: asked, to: l.to, born: l.to.births, link: l, token: c.token})
}
