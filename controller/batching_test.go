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

// TestReadsAreImmediate: what arrives is read at once, however quickly one event follows
// the other, while there is little of it; and what is more than a batch is read without a
// pause.
func TestReadsAreImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire{arrived: make(chan byte, 3*readSize)}
		c, err := batchReads(func(context.Context, string, string) (net.Conn, error) { return w, nil })(t.Context(), "tcp", "api:443")
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
		expect(time.Second+time.Millisecond, []byte("b"))
		expect(time.Second+2*time.Millisecond, []byte("c"))
		expect(2*time.Second+2*time.Millisecond, []byte("d"))

		time.Sleep(time.Second)
		at := time.Since(begin)
		for range readSize/record + 1 { // the last record is beyond the batch
			w.arrive(bytes.Repeat([]byte("e"), record))
		}
		for range readSize/record + 1 {
			expect(at, bytes.Repeat([]byte("e"), record))
		}
		close(w.arrived)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("error %v at the end, want %v", err, io.EOF)
		}
	})
}

// stream is a connection to which bytes arrive at a rate, an event at a time.
type stream struct {
	net.Conn
	rate, event int
	last        time.Time
}

func (s *stream) Read(p []byte) (int, error) {
	due := time.Duration(float64(s.event) / float64(s.rate) * float64(time.Second))
	if waited := time.Since(s.last); waited < due {
		time.Sleep(due - waited)
	}
	n := min(int(time.Since(s.last).Seconds()*float64(s.rate)+0.5), len(p))
	s.last = time.Now()
	return n, nil
}

// TestPauses: how long an event waits to be read, by how much arrives; it waits for
// nothing up to calmRate, and no longer than longestPause.
func TestPauses(t *testing.T) {
	const event = 4 << 10
	for name, c := range map[string]struct {
		rate        int
		age         time.Duration // of the connection
		least, most time.Duration
	}{
		"a rolling update, one instance at a time": {rate: 300 << 10, age: time.Hour},
		"a few rolling updates":                    {rate: 640 << 10, age: time.Hour, least: longestPause / 5, most: longestPause / 2},
		"a storm":                                  {rate: 2 * busyRate, age: time.Hour, least: longestPause, most: longestPause},
		"a storm that fills caches":                {rate: 2 * busyRate, age: time.Second, least: 10 * time.Millisecond, most: longestPause / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &pausingReader{from: &stream{rate: c.rate, event: event, last: time.Now()}, began: time.Now().Add(-c.age), last: time.Now()}
				var pause time.Duration
				p := make([]byte, readSize*100)
				for began := time.Now(); time.Since(began) < 3*rateWindow; {
					if _, err := r.Read(p); err != nil {
						t.Fatal(err)
					}
					pause = r.pause()
				}
				if pause < c.least || pause > c.most {
					t.Errorf("pauses of %s, want %s to %s", pause, c.least, c.most)
				}
			})
		})
	}
}

// TestPausesEnd: a second after a storm an event is read at once again.
func TestPausesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &pausingReader{rate: busyRate, last: time.Now(), began: time.Now().Add(-time.Hour), from: wire{arrived: make(chan byte, 2)}}
		w := r.from.(wire)
		if r.pause() != longestPause {
			t.Errorf("a pause of %s in a storm, want %s", r.pause(), longestPause)
		}
		time.Sleep(2 * rateWindow)
		p := make([]byte, 2)
		for range 2 {
			began := time.Now()
			w.arrive([]byte("a"))
			if _, err := r.Read(p); err != nil || time.Since(began) != 0 {
				t.Errorf("read after %s, error %v, want at once", time.Since(began), err)
			}
		}
	})
}

// TestDialErrors: that there is no connection is told as it is.
func TestDialErrors(t *testing.T) {
	refused := errors.New("connection refused")
	c, err := batchReads(func(context.Context, string, string) (net.Conn, error) { return nil, refused })(t.Context(), "tcp", "api:443")
	if c != nil || !errors.Is(err, refused) {
		t.Errorf("connection %v, error %v, want %v", c, err, refused)
	}
}
