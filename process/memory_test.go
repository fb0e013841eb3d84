package process

import (
	"context"
	"runtime"
	"testing"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 16 << 20: 200, 32 << 20: 100, 64 << 20: 50, 124 << 20: 25, 128 << 20: 25, 1 << 40: 25} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MiB: %d%%, want %d%%", live>>20, got, want)
		}
	}
}

// TestAfterCollections: a function is called after collections, again and again, until
// the context ends.
func TestAfterCollections(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan struct{}, 1)
	afterCollections(ctx, func() {
		select {
		case called <- struct{}{}:
		default:
		}
	})
	for range 3 {
		collectUntil(called)
	}
	cancel()
	collected(t) // what began before has ended
	select {
	case <-called:
	default:
	}
	collected(t)
	select {
	case <-called:
		t.Error("called after the end")
	default:
	}
}

// collectUntil there is something to receive: a collection may come before what it has
// to find.
func collectUntil(done <-chan struct{}) {
	for {
		runtime.GC()
		select {
		case <-done:
			return
		default:
		}
	}
}

// collected returns after a collection that found what was left before it.
func collected(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	runtime.AddCleanup(&struct{ _ *byte }{}, func(done chan struct{}) { close(done) }, done)
	collectUntil(done)
}
