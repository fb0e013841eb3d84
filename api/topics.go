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

// topics are those that somebody looks at.
type topics struct {
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

// close ends all topics, and returns when they have ended.
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
}
