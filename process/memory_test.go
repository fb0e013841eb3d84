package process

import (
	"context"
	"math"
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

func TestLimitFor(t *testing.T) {
	for _, c := range []struct {
		held            uint64 // MiB
		container, want int64
	}{{0, 1000, 100}, {72, 1000, 100}, {73, 1000, 1000}, {500, 1000, 1000}, {0, 90, 90}, {73, 90, 90}} {
		if got := limitFor(c.held<<20, c.container<<20); got != c.want<<20 {
			t.Errorf("%d MiB in a container of %d MiB: %d MiB, want %d MiB", c.held, c.container, got>>20, c.want)
		}
	}
}

// TestAdjusting: a heap that grows gets what it needs, and gives it back.
func TestAdjusting(t *testing.T) {
	was, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	t.Cleanup(func() {
		debug.SetMemoryLimit(was)
		debug.SetGCPercent(percent)
	})
	const container = 256 << 20
	adjust := adjusting(container)
	limit := func() int64 {
		runtime.GC()
		adjust()
		return debug.SetMemoryLimit(-1)
	}
	if got := limit(); got != totalSize {
		t.Errorf("beside a small heap it is %d", got)
	}
	held := make([]byte, 80<<20)
	if got := limit(); got != container {
		t.Errorf("beside a heap of 80 MiB it is %d", got)
	}
	runtime.KeepAlive(held)
	if got := limit(); got != totalSize {
		t.Errorf("beside what is left of it it is %d", got)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	debug.SetMemoryLimit(1 << 30)
	adjusting(container)()
	if got := debug.SetMemoryLimit(-1); got != 1<<30 {
		t.Errorf("beside GOMEMLIMIT it is %d", got)
	}
}

// TestLimitMemory: Go keeps below the limit of the container, unless GOMEMLIMIT says
// something else.
func TestLimitMemory(t *testing.T) {
	const was = math.MaxInt64 // other tests leave theirs
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(was))
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
