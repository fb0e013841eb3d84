package process

import (
	"context"
	"runtime"
	"testing"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 8 << 20: 200, 16 << 20: 100, 32 << 20: 50, 60 << 20: 25, 64 << 20: 25, 1 << 40: 25} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MiB: %d%%, want %d%%", live>>20, got, want)
		}
	}
}

// TestAfterCollections: a function is called after each collection, until the context
// ends.
func TestAfterCollections(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan struct{})
	afterCollections(ctx, func() { called <- struct{}{} })
	for range 3 {
		runtime.GC()
		<-called
	}
	cancel()
	over := make(chan struct{})
	runtime.AddCleanup(&struct{ _ *byte }{}, func(int) { close(over) }, 0)
	runtime.GC()
	select {
	case <-called:
		t.Error("called after the end")
	case <-over:
	}
}
