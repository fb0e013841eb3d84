package controller

import (
	"bufio"
	"context"
	"math"
	"net"
	"time"
)

const (
	// A connection is left alone after something was read from it: for gatherMost when
	// gatherMuch or more has come within gatherMemory, for a part of that when less has,
	// but for gatherLeast. A new one fills caches, for which everything waits: the pause is
	// no more than a gatherShare of its age.
	gatherLeast  = 5 * time.Millisecond
	gatherMost   = 100 * time.Millisecond
	gatherMuch   = 4 << 20 // bytes
	gatherMemory = 10 * time.Second
	gatherShare  = 100
	// gatherSize is how many bytes are read at once at most.
	gatherSize = 64 << 10
)

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// gathering has a dialer's connections receive in batches what arrives in quick
// succession. An event of a watch is handed from goroutine to goroutine on its way to a
// cache, and waking all of them for each event is a third of the controller's work when
// there are many. What comes to a connection at rest is received at once, and what follows
// within gatherLeast: who changes a few instances waits for nothing. Only where much has
// been coming for seconds may an event be late by gatherMost.
func gathering(next dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gatheringConn{Conn: c, buffered: bufio.NewReaderSize(&pausing{from: c, began: time.Now()}, gatherSize)}, nil
	}
}

// gatheringConn reads by way of a buffer, because TLS asks for a record at a time.
type gatheringConn struct {
	net.Conn
	buffered *bufio.Reader
}

func (c *gatheringConn) Read(p []byte) (int, error) { return c.buffered.Read(p) }

// pausing reads again after a pause, or at once where more was there than it was asked
// for: then there is a batch already.
type pausing struct {
	from  net.Conn
	began time.Time
	last  time.Time
	full  bool
	// came is how many bytes, gatherMuch at most; each counts for less as time goes by.
	came float64
}

func (r *pausing) Read(p []byte) (int, error) {
	if !r.full {
		pause := min(time.Duration(r.came/gatherMuch*float64(gatherMost)), r.last.Sub(r.began)/gatherShare)
		time.Sleep(max(pause, gatherLeast) - time.Since(r.last)) //nolint:forbidigo // nothing tells when a batch is complete
	}
	n, err := r.from.Read(p)
	now := time.Now()
	r.came = min(gatherMuch, r.came*math.Exp(-float64(now.Sub(r.last))/float64(gatherMemory))+float64(n))
	r.last, r.full = now, n == len(p)
	return n, err
}
