package live

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/api/answer"
)

// maxTopics bounds what is shown at a time.
const maxTopics = 4096

// computingAtOnce bounds how many topics are computed at a time.
const computingAtOnce = 4

// Options of topics. All are required.
type Options struct {
	// Source of a feed.
	Source func(FeedKey) (Source, error)
	// Ask the API server for anything. pulse is how often while something is watched, and how
	// long it may take.
	Ask   func(context.Context) error
	Pulse time.Duration
	// Linger is how long a watch goes on after its last reader has gone.
	Linger time.Duration
	// Panicked is told of each panic of a computation.
	Panicked func()
}

// Topics are those that somebody looks at.
type Topics struct {
	// ctx ends when everything is to end. It has the logger.
	ctx   context.Context //nolint:containedctx // topics begin and end while it lasts
	feeds *feeds
	kept  kept[string, *Topic]
	run   sync.WaitGroup
	// turns bound how many topics are computed at a time.
	turns chan struct{}
	// panicked is told of each panic.
	panicked func()
}

// New makes the set of them. It asks the API server nothing before somebody looks. When ctx ends, nothing is watched any more.
func New(ctx context.Context, o Options) *Topics {
	f := &feeds{ctx: ctx, make: o.Source, kept: kept[FeedKey, *feed]{linger: o.Linger, all: map[FeedKey]*holding[*feed]{}}, pulse: pulse{ask: o.Ask, every: o.Pulse}}
	f.run.Go(f.feelPulse)
	return &Topics{ctx: ctx, feeds: f, kept: kept[string, *Topic]{linger: o.Linger, all: map[string]*holding[*Topic]{}}, turns: make(chan struct{}, computingAtOnce), panicked: o.Panicked}
}

// Context of everything that is watched. It has the logger.
func (p *Topics) Context() context.Context { return p.ctx }

// Watches of the API server that go on.
func (p *Topics) Watches() int { return p.feeds.kept.count() }

// Acquire a topic by its name. The function that is returned releases it.
func (p *Topics) Acquire(name string, about func(Resource, toolscache.ObjectName) bool, compute Computation) (*Topic, func(), error) {
	return p.kept.acquire(name, func(others int) (*Topic, error) {
		switch {
		case p.ctx.Err() != nil:
			return nil, apierrors.NewServiceUnavailable("the server is ending")
		case others >= maxTopics:
			return nil, apierrors.NewTooManyRequests("too many different objects are looked at; try again later", answer.RetrySeconds)
		}
		ctx, stop := context.WithCancel(p.ctx)
		t := &Topic{name: name, about: about, compute: compute, topics: p, stop: stop, dirty: make(chan struct{}, 1), feeds: map[FeedKey]*feed{}, next: make(chan struct{})}
		p.run.Go(func() { t.run(ctx) })
		return t, nil
	})
}

// Close ends all topics and watches, and returns when they have ended. ctx has to have ended.
func (p *Topics) Close() {
	p.kept.close()
	p.run.Wait()
	p.feeds.close()
}
