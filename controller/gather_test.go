package controller

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// wire is a connection to which bytes arrive.
type wire struct {
	net.Conn
	arrived chan byte
}

func (w wire) arrive(b []byte) {
	for _, c := range b {
		w.arrived <- c
	}
}

// Read waits for a byte, and takes what is there.
func (w wire) Read(p []byte) (int, error) {
	c, open := <-w.arrived
	if !open {
		return 0, io.EOF
	}
	p[0] = c
	n := 1
	for ; n < len(p) && len(w.arrived) > 0; n++ {
		p[n] = <-w.arrived
	}
	return n, nil
}

// TestGathering: what arrives at a connection at rest is read at once, what follows
// together, and what is more than a batch without a pause.
func TestGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire{arrived: make(chan byte, 3*gatherSize)}
		c, err := gathering(func(context.Context, string, string) (net.Conn, error) { return w, nil })(t.Context(), "tcp", "api:443")
		if err != nil {
			t.Fatal(err)
		}
		const record = 1024 // TLS asks for little at a time
		begin := time.Now()
		expect := func(at time.Duration, want []byte) {
			t.Helper()
			p := make([]byte, record)
			n, err := c.Read(p)
			if now := time.Since(begin); err != nil || !bytes.Equal(p[:n], want) || now != at {
				t.Errorf("read %d bytes after %s (%v), want %d after %s", n, now, err, len(want), at)
			}
		}
		go func() {
			time.Sleep(time.Second)
			w.arrive([]byte("a"))
			time.Sleep(time.Millisecond)
			w.arrive([]byte("b"))
			time.Sleep(time.Millisecond)
			w.arrive([]byte("c"))
			time.Sleep(time.Second)
			w.arrive([]byte("d"))
		}()
		expect(time.Second, []byte("a"))
		expect(time.Second+gatherLeast, []byte("bc"))
		expect(2*time.Second+2*time.Millisecond, []byte("d"))

		time.Sleep(time.Second)
		at := time.Since(begin)
		for range gatherSize/record + 1 { // the last record is beyond the batch
			w.arrive(bytes.Repeat([]byte("e"), record))
		}
		for range gatherSize/record + 1 {
			expect(at, bytes.Repeat([]byte("e"), record))
		}
		close(w.arrived)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("error %v at the end, want %v", err, io.EOF)
		}
	})
}

// storm is a connection to which so many bytes have always come.
type storm struct {
	net.Conn
	size int
}

func (s storm) Read([]byte) (int, error) { return s.size, nil }

// TestGatheringStorm: the more has come, the longer are the pauses, up to a bound, and that
// is forgotten when nothing comes. A new connection has none but short ones.
func TestGatheringStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = gatherSize - 1
		r := &pausing{from: storm{size: size}, began: time.Now()}
		p := make([]byte, gatherSize)
		next := func() time.Duration {
			begin := time.Now()
			if n, err := r.Read(p); n != size || err != nil {
				t.Errorf("read %d bytes, error %v", n, err)
			}
			return time.Since(begin)
		}
		for range 2 * gatherMuch / size {
			next()
		}
		if young := next(); young > gatherMost/10 {
			t.Errorf("a pause of %s while caches are filled", young)
		}
		time.Sleep(10 * gatherMemory)
		first, few := next(), next()
		for range gatherMuch/size - 2 {
			next()
		}
		many := next()
		for range gatherMuch / size {
			next()
		}
		most := next()
		time.Sleep(gatherMemory)
		rested, later := next(), next()
		time.Sleep(10 * gatherMemory)
		next()
		after := next()
		if first != 0 || few != gatherLeast || many <= gatherMost/2 || many >= gatherMost || most != gatherMost ||
			rested != 0 || later <= gatherLeast || later >= gatherMost/2 || after != gatherLeast {
			t.Errorf("pauses of %s, %s, %s and %s, of %s and %s after a while, and of %s after a long one",
				first, few, many, most, rested, later, after)
		}
	})
}

// TestGatheringDials: that there is no connection is told as it is.
func TestGatheringDials(t *testing.T) {
	refused := errors.New("connection refused")
	c, err := gathering(func(context.Context, string, string) (net.Conn, error) { return nil, refused })(t.Context(), "tcp", "api:443")
	if c != nil || !errors.Is(err, refused) {
		t.Errorf("connection %v, error %v, want %v", c, err, refused)
	}
}
