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
	// totalSize is what all of Go's memory takes, with what lies between objects too, while
	// the heap and the stacks hold no more than heapSize. A percentage is of what the last
	// collection found. A heap that grows fast, or a collector that gets its turn late, passes
	// what was meant.
	totalSize = 100 << 20
	// heapShare of the container's memory is Go's. The rest is what Go does not count.
	heapShare = 0.9
	// liveMetric is what the last collection found to be in use.
	liveMetric = "/gc/heap/live:bytes"
	// stacksMetric is what stacks take. No collection frees that of a goroutine that waits.
	stacksMetric = "/memory/classes/heap/stacks:bytes"
)

// BoundMemory keeps the collector's target near what the heap holds until ctx ends, all of
// Go's memory near totalSize while it holds little, and below the limit of the container
// always. The environment variables GOGC and GOMEMLIMIT take precedence. Command calls it;
// others are benchmarks, which have to measure under the same setting.
func BoundMemory(ctx context.Context) {
	limitMemory(ctx, memlimit.FromCgroup)
	if os.Getenv("GOGC") != "" {
		return
	}
	adjust := adjusting(debug.SetMemoryLimit(-1))
	adjust()
	afterCollections(ctx, adjust)
}

// adjusting is a function that sets the collector's targets by what the last collection
// found; container is the limit of all of Go's memory that is never passed.
func adjusting(container int64) func() {
	samples := []metrics.Sample{{Name: liveMetric}, {Name: stacksMetric}}
	percent, limit := 0, int64(0)
	return func() {
		metrics.Read(samples)
		live, stacks := samples[0].Value.Uint64(), samples[1].Value.Uint64()
		if p := percentFor(live); p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
		if l := limitFor(live+stacks, container); l != limit && os.Getenv("GOMEMLIMIT") == "" {
			limit = l
			debug.SetMemoryLimit(l)
		}
	}
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

// limitFor all of Go's memory when heap and stacks hold so many bytes. If they are many, it is
// that of the container alone: near a limit each collection frees little.
func limitFor(held uint64, container int64) int64 {
	if held > heapSize {
		return container
	}
	return min(totalSize, container)
}
