package controller

import (
	"bufio"
	"context"
	"net"
	"time"
)

const (
	// gatherFor is how long a connection is left alone after something was read from it.
	gatherFor = 5 * time.Millisecond
	// gatherSize is how many bytes are read at once at most.
	gatherSize = 64 << 10
)

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// gathering has a dialer's connections receive in batches what arrives in quick
// succession. An event of a watch is handed from goroutine to goroutine on its way to a
// cache, and waking all of them for each event is a tenth of the controller's work or
// more. What comes to a connection at rest is received at once, the next after gatherFor
// at most.
func gathering(next dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gatheringConn{Conn: c, buffered: bufio.NewReaderSize(&pausing{from: c}, gatherSize)}, nil
	}
}

// gatheringConn reads by way of a buffer, because TLS asks for a record at a time.
type gatheringConn struct {
	net.Conn
	buffered *bufio.Reader
}

func (c *gatheringConn) Read(p []byte) (int, error) { return c.buffered.Read(p) }

// pausing reads again after gatherFor, or at once where more was there than it was asked
// for: then there is a batch already.
type pausing struct {
	from net.Conn
	last time.Time
	full bool
}

func (r *pausing) Read(p []byte) (int, error) {
	if !r.full {
		time.Sleep(gatherFor - time.Since(r.last)) //nolint:forbidigo // nothing tells when a batch is complete
	}
	n, err := r.from.Read(p)
	r.last, r.full = time.Now(), n == len(p)
	return n, err
}
