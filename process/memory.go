package process

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/klog/v2"
)

// By default Go lets a heap grow to twice what is in use. Most of what is in use here are
// caches, and the garbage beside them does not grow with them. So the heap may grow by a
// number of bytes, not by a share: a small heap is collected seldom, which makes admission
// faster, and a large one takes little more than what is in use.
// GOGC, which the chart could set, is no substitute: it is one share for all sizes of
// heap. The limit of the container's memory comes on top: near it the heap is collected
// more often, because the kernel kills what goes beyond.
const (
	heapRoom = 32 << 20
	// heapSize is what a heap and its room take together: the room is less beside a heap
	// of more than 40 MiB. Those are caches of many clusters or many thousand pods;
	// docs/design/20261126.memory.md has the figures.
	heapSize = 72 << 20
	// minPercent bounds what collecting a very large heap costs.
	minPercent = 25
	maxPercent = 400
	// heapShare of the container's memory is Go's. The rest is what Go does not count.
	heapShare = 0.9
	// liveMetric is what the last collection found to be in use.
	liveMetric = "/gc/heap/live:bytes"
)

// BoundMemory keeps the collector's target near what the heap holds until ctx ends, and
// below the limit of the container. The environment variables GOGC and GOMEMLIMIT take
// precedence. Command calls it; others are
// benchmarks, which have to measure under the same setting.
func BoundMemory(ctx context.Context) {
	limitMemory(ctx, memlimit.FromCgroup)
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

// limitMemory has the collector keep below a share of the limit. Without one, or where
// it cannot be read, there is none.
func limitMemory(ctx context.Context, limit memlimit.Provider) {
	set, err := memlimit.Set(memlimit.WithProvider(limit), memlimit.WithRatio(heapShare))
	if err != nil {
		klog.FromContext(ctx).V(2).Info("The limit of the container's memory is not known", "reason", err.Error())
		return
	}
	klog.FromContext(ctx).V(2).Info("Memory is limited", "bytes", set)
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
		room := min(heapRoom, heapSize-min(heapSize, live))
		percent = int(min(uint64(maxPercent), room*100/live))
	}
	return max(minPercent, percent/step*step)
}
