package servedschema

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// retryInterval is how long a leader waits that cannot read the served schema yet.
const retryInterval = 2 * time.Second

// errHeld is what writes of a held kind end with.
var errHeld = errors.New("the kind is held, because its served schema lost fields that objects use")

// Supervise runs the controller of the kind until ctx ends, but for the time in which the kind
// is held. It begins when the served schema is known, or cannot be known.
func (h *Hold) Supervise(ctx, work context.Context, run func(ctx, work context.Context), isTransient func(error) bool) {
	if h.Interval == 0 {
		run(ctx, work)
		return
	}
	if !h.checkFirst(ctx, isTransient) {
		return
	}
	for ctx.Err() == nil {
		running, stop := context.WithCancel(ctx)
		var working sync.WaitGroup
		isHeld, interval := h.Held() != nil, heldInterval
		if !isHeld {
			interval = h.Interval
			working.Go(func() { run(running, work) })
		}
		h.awaitTurn(ctx, isHeld, interval)
		stop()
		working.Wait()
		if !isHeld && ctx.Err() == nil {
			h.check(ctx) // and record that it is held
		}
	}
}

// awaitTurn compares schemas until the kind is held and was not, or the other way round.
func (h *Hold) awaitTurn(ctx context.Context, wasHeld bool, interval time.Duration) {
	ticker := h.Clock.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		changed := h.whenChanged()
		if (h.Held() != nil) != wasHeld {
			return
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-ticker.C():
			h.check(ctx)
		}
	}
}

// checkFirst asks until there is an answer. Where the schema cannot be read for good, nothing
// is held by it.
func (h *Hold) checkFirst(ctx context.Context, isTransient func(error) bool) bool {
	for ctx.Err() == nil {
		err := h.Check(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() == nil && !isTransient(err) {
			klog.FromContext(ctx).Info("What a schema loses is noticed by objects alone, until it can be read", "kind", h.Kind.Kind, "reason", err.Error())
			return true
		}
		select {
		case <-ctx.Done():
		case <-h.Clock.After(retryInterval):
		}
	}
	return false
}

func (h *Hold) check(ctx context.Context) {
	if err := h.Check(ctx); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Info("The served schema cannot be compared", "kind", h.Kind.Kind, "reason", err.Error())
	}
}

// whenChanged is closed when the kind begins to be held, and when that ends.
func (h *Hold) whenChanged() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// Gate refuses what would write while the kind is held: each write of an object erases fields.
func (h *Hold) Gate(next http.RoundTripper) http.RoundTripper { return gate{h, next} }

type gate struct {
	hold *Hold
	next http.RoundTripper
}

func (g gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && g.hold.Held() != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, errHeld)
	}
	return g.next.RoundTrip(r)
}
