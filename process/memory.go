package process

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// By default Go lets a heap grow to twice what is in use. Most of what is in use here are
// caches, and the garbage beside them does not grow with them. So the heap may grow by a
// number of bytes, not by a share: a small heap is collected seldom, which makes admission
// faster, and a large one takes little more than what is in use.
// GOGC and GOMEMLIMIT, which the chart could set, are no substitute: GOGC is one share for
// all sizes of heap, and GOMEMLIMIT only begins to collect more often near the limit.
const (
	heapRoom = 32 << 20
	// minPercent bounds what collecting a very large heap costs.
	minPercent = 25
	maxPercent = 400
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
// never twice at a time. A clock would come too late: caches that are filled at the start grow
// several times within a second, and the percentage of a small heap would let them double.
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
	percent := maxPercent
	if live > 0 {
		percent = int(min(uint64(maxPercent), heapRoom*100/live))
	}
	return max(minPercent, percent/step*step)
}
