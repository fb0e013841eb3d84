package api

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
)

// maxTopics bounds what is shown at a time.
const maxTopics = 4096

// computingAtOnce bounds how many topics are computed at a time.
const computingAtOnce = 4

// topicOptions of topics. All are required.
type topicOptions struct {
	// source of a feed.
	source func(feedKey) (source, error)
	// ask the API server for anything. pulse is how often while something is watched, and how
	// long it may take.
	ask   func(context.Context) error
	pulse time.Duration
	// linger is how long a watch goes on after its last reader has gone.
	linger time.Duration
	// panicked is told of each panic of a computation.
	panicked func()
}

// topics are those that somebody looks at.
type topics struct {
	// ctx ends when everything is to end. It has the logger.
	ctx    context.Context //nolint:containedctx // topics begin and end while it lasts
	feeds  *feeds
	linger time.Duration

	mu  sync.Mutex
	all map[string]*topic
	run sync.WaitGroup
	// turns bound how many topics are computed at a time.
	turns chan struct{}
	// panicked is told of each panic.
	panicked func()
}

// newTopics makes the set of them. It asks the API server nothing before somebody looks. When ctx ends, nothing is watched any more.
func newTopics(ctx context.Context, o topicOptions) *topics {
	f := &feeds{ctx: ctx, linger: o.linger, make: o.source, all: map[feedKey]*feed{}, pulse: pulse{ask: o.ask, every: o.pulse}}
	f.run.Go(f.feelPulse)
	return &topics{ctx: ctx, feeds: f, linger: o.linger, all: map[string]*topic{}, turns: make(chan struct{}, computingAtOnce), panicked: o.panicked}
}

// context of everything that is watched. It has the logger.
func (p *topics) context() context.Context { return p.ctx }

// watches of the API server that go on.
func (p *topics) watches() int { return p.feeds.count() }

// acquire a topic by its name. The function that is returned releases it.
func (p *topics) acquire(name string, about func(resource, toolscache.ObjectName) bool, compute computing) (*topic, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.all[name]
	if t == nil {
		switch {
		case p.feeds.ctx.Err() != nil:
			return nil, nil, apierrors.NewServiceUnavailable("the server is ending")
		case len(p.all) >= maxTopics:
			return nil, nil, apierrors.NewTooManyRequests("too many different objects are looked at; try again later", retrySeconds)
		}
		ctx, stop := context.WithCancel(p.feeds.ctx)
		t = &topic{name: name, about: about, compute: compute, topics: p, stop: stop, dirty: make(chan struct{}, 1), feeds: map[feedKey]*feed{}, next: make(chan struct{})}
		p.all[name] = t
		p.run.Go(func() { t.run(ctx) })
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usage.begin()
	return t, sync.OnceFunc(t.release), nil
}

func (t *topic) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usage.leave(t.topics.linger, t.end)
}

// close ends all topics and watches, and returns when they have ended. ctx has to have ended.
func (p *topics) close() {
	p.mu.Lock()
	for name, t := range p.all {
		delete(p.all, name)
		t.mu.Lock()
		t.usage.stop()
		t.mu.Unlock()
		t.stop()
	}
	p.mu.Unlock()
	p.run.Wait()
	p.feeds.close()
}
