package write

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestConcurrency(t *testing.T) {
	var c Concurrency
	now := time.Now()
	if c.start(now, 1) != 1 {
		t.Error("the first sync starts slowly")
	}
	if c.start(now, 8) != 8 {
		t.Error("the first sync starts as others let it")
	}
	c.keep(40, true, now)
	if c.start(now.Add(time.Second), 1) != 40 || c.start(now.Add(trustLasts+time.Second), 1) != 1 {
		t.Error("one that follows soon goes on, one that follows late does not")
	}
	if c.start(now.Add(time.Second), 8) != 40 || c.start(now.Add(trustLasts+time.Second), 8) != 8 {
		t.Error("one that follows late starts as others let it")
	}
	c.keep(40, false, now)
	if c.start(now, 8) != 1 || c.start(now.Add(time.Hour), 8) != 1 {
		t.Error("after a fault of its own it starts slowly, whatever others do")
	}
}

// TestTrust: an object of which nothing is known starts with several writes where all
// that it does has just come through in its namespace.
func TestTrust(t *testing.T) {
	var n trust
	now := time.Now()
	create := []Write{{Op: "Create"}, {Op: "Create"}}
	both := append([]Write{{Op: "CreateRevision"}}, create...)
	created := map[string]int{"Create": 3}
	if n.start("ns", create, now) != 1 {
		t.Error("nothing is known yet")
	}
	n.keep("ns", map[string]int{"CreateRevision": 1}, true, now)
	if n.start("ns", create, now) != 1 || n.start("ns", both, now) != 1 {
		t.Error("of pods nothing is known yet")
	}
	n.keep("ns", created, true, now)
	for _, writes := range [][]Write{create, both} {
		if n.start("ns", writes, now.Add(time.Second)) != startTrusted || n.start("ns", writes, now.Add(trustLasts)) != 1 {
			t.Error("it is trusted for a while")
		}
	}
	if n.start("other", create, now) != 1 {
		t.Error("of another namespace nothing is known")
	}
	n.keep("other", created, true, now)
	n.keep("ns", created, false, now)
	if n.start("ns", create, now) != 1 || n.start("ns", both[:1], now) != 1 || n.start("other", create, now) != startTrusted {
		t.Error("after a fault nothing is trusted in its namespace")
	}
	for i := range 100 {
		n.keep(fmt.Sprint("ns-", i), created, true, now.Add(time.Duration(i)*trustLasts))
	}
	if len(n.until) != 1 {
		t.Errorf("%d operations are remembered, want the last one only", len(n.until))
	}
}

// TestSlots: all objects together have a bounded number of writes under way, and who waits
// is let go when the work ends.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := make(slots, 2)
		ctx, cancel := context.WithCancel(t.Context())
		began := make(chan func(), 3)
		for range 3 {
			go func() { began <- slots.acquire(ctx) }()
		}
		synctest.Wait()
		if len(began) != 2 {
			t.Fatalf("%d have begun, want 2", len(began))
		}
		(<-began)()
		synctest.Wait()
		if len(began) != 2 {
			t.Fatalf("%d hold a slot after one has been freed, want 2", len(began))
		}
		go func() { began <- slots.acquire(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(began) != 3 {
			t.Fatalf("%d are let go when the work ends, want the third, too", len(began))
		}
		for range 3 {
			(<-began)()
		}
	})
}
