package cache

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// lookAgain is when to ask again whether it is an object's turn to be looked at live.
	lookAgain = time.Second
	// goneAgain is when to look again at an object that exists in the stores only.
	goneAgain = time.Second
)

// View is what a planner sees of one object and of what belongs to it. It is a pointer.
type View interface {
	comparable
	// Versions of all that it shows.
	Versions() map[types.UID]string
}

// Observer makes the views of all objects of a kind: from the stores, once they show
// our own last writes, or live when that takes too long.
//
// Only one object at a time is looked at live: when a watch is behind, it is so
// for all objects, and each list may hold those of a whole namespace.
type Observer[V View] struct {
	Stores Stores
	Clock  clock.PassiveClock
	// Repairs counts live views.
	Repairs prometheus.Counter

	live sync.Mutex // held while a live view is made
}

// Sources of one object's view.
type Sources[V View] struct {
	// Cached reads the stores, Live the API server; its zero value: the object is gone.
	Cached, Live func(ctx context.Context) (V, error)
}

// Observe returns what to plan on; the zero value, and how long to wait for an event at
// most, when that cannot be said yet.
func (o *Observer[V]) Observe(ctx context.Context, g *Guard, s Sources[V]) (view V, wait time.Duration, err error) {
	var none V
	logger := klog.FromContext(ctx)
	verdict := g.check(o.Stores, o.Clock.Now())
	if verdict.wait > 0 {
		logger.V(4).Info("Skipped: the caches lack what was written last", "wait", verdict.wait)
		return none, verdict.wait, nil
	}
	cached, err := s.Cached(ctx)
	if err != nil || !verdict.live {
		return cached, 0, err
	}
	if !o.live.TryLock() {
		return none, lookAgain, nil
	}
	defer o.live.Unlock()
	g.looks(o.Clock.Now())
	o.Repairs.Inc()
	live, err := s.Live(ctx)
	switch {
	case err != nil:
		return none, 0, err
	case live == none:
		return none, goneAgain, nil // its deletion is about to reach the stores
	}
	same := maps.Equal(live.Versions(), cached.Versions())
	if same {
		g.clear() // the marks stand for writes that left no trace
	}
	logger.Info("Planning on a live view: the caches still lack what was written", "cachesCurrent", same)
	return live, 0, nil
}
