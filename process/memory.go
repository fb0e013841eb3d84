package process

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// What a process holds is its caches, and Go's collector would let it take twice as
// much. What it needs beyond them does not grow with them, so that the collector is
// given so many bytes of room rather than a share: a small heap is collected seldom,
// which admission is the faster for, and a large one takes little more than it holds.
// GOGC and GOMEMLIMIT, which the chart could set, are no substitute: GOGC is one share for
// all sizes of heap, and GOMEMLIMIT only begins to collect more often near the limit.
const (
	heapRoom = 32 << 20
	// leastPercent bounds what collecting a very large heap costs.
	leastPercent = 25
	mostPercent  = 400
	// liveMetric is what the last collection found to be in use.
	liveMetric = "/gc/heap/live:bytes"
)

// BoundMemory keeps the collector's target near what the heap holds until ctx ends.
// The environment variable GOGC takes precedence. Command calls it; others are
// benchmarks, which have to measure under the same setting.
func BoundMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: liveMetric}}
	percent := 0
	adjust := func() {
		metrics.Read(sample)
		if p := percentFor(sample[0].Value.Uint64()); p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
	}
	adjust()
	afterCollections(ctx, adjust)
}

// afterCollections calls a function after each of the collector's runs until ctx ends,
// never twice at a time. A clock would come too late: caches that fill at a start grow
// several times within a second, and what a small heap was granted would have it grow
// by as much again.
func afterCollections(ctx context.Context, f func()) {
	// Nothing refers to it, so that the next collection finds that out. The pointer
	// keeps it from sharing its memory with other small objects.
	found := &struct{ _ *byte }{}
	runtime.AddCleanup(found, func(f func()) {
		if ctx.Err() == nil {
			f()
			afterCollections(ctx, f)
		}
	}, f)
}

// percentFor a heap that holds so many bytes, in steps, because each change stops the
// process for a moment.
func percentFor(live uint64) int {
	const step = 5
	percent := mostPercent
	if live > 0 {
		percent = int(min(uint64(mostPercent), heapRoom*100/live))
	}
	return max(leastPercent, percent/step*step)
}
