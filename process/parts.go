package process

import (
	"context"
	"errors"
	"sync"
)

// Parts of a program: when one of them ends, with an error or without, so do the others.
// errgroup ends them on an error only, and tells of one error only.
type Parts struct {
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

// NewParts makes an empty set, whose members end with ctx at the latest.
func NewParts(ctx context.Context) *Parts {
	p := &Parts{}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// Run starts a part, which is to return soon after its context has ended.
func (p *Parts) Run(part func(context.Context) error) {
	p.group.Go(func() {
		defer p.cancel()
		if err := part(p.ctx); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, err)
		}
	})
}

// Wait returns when all parts have ended, with what they returned.
func (p *Parts) Wait() error {
	p.group.Wait()
	p.cancel()
	return errors.Join(p.errs...)
}
