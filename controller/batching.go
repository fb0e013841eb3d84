package controller

import (
	"bufio"
	"context"
	"math"
	"net"
	"time"
)

const (
	// A connection that receives more than calmRate is read after pauses. They grow with
	// the rate, up to longestPause at busyRate. Both are in bytes per second.
	calmRate     = 384 << 10
	busyRate     = 1 << 20
	longestPause = 100 * time.Millisecond
	// rateWindow is the time over which the rate is measured.
	rateWindow = time.Second
	// pauseShare bounds a pause to this part of the connection's age: a new connection
	// fills caches, for which everything waits.
	pauseShare = 100
	// readSize is how many bytes are read at once at most.
	readSize = 64 << 10
)

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// batchReads makes the connections of a dialer read in batches while much arrives. An
// event of a watch passes several goroutines on its way to a cache, and waking them for
// each event alone is a third of the controller's work when there are many. While little
// arrives, every read is immediate.
func batchReads(next dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		return &batchedConn{Conn: c, buffered: bufio.NewReaderSize(&pausingReader{from: c, began: now, last: now}, readSize)}, nil
	}
}

// batchedConn reads through a buffer, because TLS asks for one record at a time.
type batchedConn struct {
	net.Conn
	buffered *bufio.Reader
}

func (c *batchedConn) Read(p []byte) (int, error) { return c.buffered.Read(p) }

// pausingReader leaves a pause after each read while the rate is above calmRate. There is
// none after a read that took all that it could: the next batch is there already.
type pausingReader struct {
	from  net.Conn
	began time.Time
	last  time.Time
	full  bool
	// rate is the mean of the last rateWindow or so, in bytes per second, at most busyRate.
	rate float64
}

func (r *pausingReader) Read(p []byte) (int, error) {
	if !r.full {
		time.Sleep(r.pause() - time.Since(r.last)) //nolint:forbidigo // nothing tells when a batch is complete
	}
	n, err := r.from.Read(p)
	now := time.Now()
	decay := math.Exp(-now.Sub(r.last).Seconds() / rateWindow.Seconds())
	r.rate = min(busyRate, r.rate*decay+float64(n)/rateWindow.Seconds())
	r.last, r.full = now, n == len(p)
	return n, err
}

func (r *pausingReader) pause() time.Duration {
	above := max(0, r.rate-calmRate) / (busyRate - calmRate)
	return min(time.Duration(above*float64(longestPause)), r.last.Sub(r.began)/pauseShare)
}
