package process

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 16 << 20: 200, 32 << 20: 100, 40 << 20: 80, 48 << 20: 50, 54 << 20: 30, 57 << 20: 25, 72 << 20: 25, 100 << 20: 25, 128 << 20: 25, 1 << 40: 25} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MiB: %d%%, want %d%%", live>>20, got, want)
		}
	}
}

// TestLimitMemory: Go keeps below the limit of the container, unless GOMEMLIMIT says
// something else.
func TestLimitMemory(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	limitMemory(t.Context(), func() (uint64, error) { return 0, memlimit.ErrNoLimit })
	if got := debug.SetMemoryLimit(-1); got != was {
		t.Errorf("without a limit it is %d", got)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	limitMemory(t.Context(), memlimit.Limit(10<<30))
	if got := debug.SetMemoryLimit(-1); got != was {
		t.Errorf("beside GOMEMLIMIT it is %d", got)
	}
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil { // Setenv puts it back
		t.Fatal(err)
	}
	limitMemory(t.Context(), memlimit.Limit(10<<30))
	if got := debug.SetMemoryLimit(-1); got != 9<<30 {
		t.Errorf("it is %d", got)
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
