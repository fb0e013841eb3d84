package tapp

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/time/rate"
)

// Dry-run creates of one namespace: a tenth of what all reviews may ask of the API
// server by default, so that one namespace does not take the turns of the others.
const (
	triesPerSecond = 200
	triesAtOnce    = 400
)

// sweepAbove is from how many namespaces on those are dropped that tried none of late.
const sweepAbove = 1000

var errNoTurn = errors.New("too many pods of this namespace are being tried")

// turns limits the dry-run creates of each namespace.
type turns struct {
	mu         sync.Mutex
	namespaces map[string]*rate.Limiter
}

func newTurns() *turns { return &turns{namespaces: map[string]*rate.Limiter{}} }

// wait for the namespace's turn. The error is errNoTurn if it does not come in time.
func (t *turns) wait(ctx context.Context, namespace string) error {
	err := t.of(namespace).Wait(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errNoTurn
}

func (t *turns) of(namespace string) *rate.Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.namespaces[namespace]
	if l == nil {
		if len(t.namespaces) >= sweepAbove {
			t.sweep()
		}
		l = rate.NewLimiter(triesPerSecond, triesAtOnce)
		t.namespaces[namespace] = l
	}
	return l
}

// sweep drops the limiters that limit nothing now: new ones would be the same.
func (t *turns) sweep() {
	for name, l := range t.namespaces {
		if l.Tokens() >= triesAtOnce {
			delete(t.namespaces, name)
		}
	}
}
