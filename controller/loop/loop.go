// Package loop is the work queue of the controllers: keys in, one sync per key at
// a time, errors retried with backoff, panics contained, and storms of events
// coalesced into few syncs.
package loop

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Key names the object that a sync is about.
type Key = types.NamespacedName

// A failing key is tried again after backoffMin, doubling to backoffMax. A fault
// that is not the key's own, such as an API server that is away, ends for all
// keys at once, and must not leave them waiting.
const (
	backoffMin          = 20 * time.Millisecond
	backoffMax          = 30 * time.Second
	backoffMaxTransient = 2 * time.Second
)

// Result of a sync.
type Result struct {
	// After is when to sync the key again if no event does earlier; 0: never.
	After time.Duration
	// Progress of the object.
	Progress Progress
	// Writing is how much of the sync was spent on writes, when all was decided. It does
	// not put the next sync off.
	Writing time.Duration
}

// Progress of an object that a sync was about. The key of one that is under way goes
// before those that have not begun, but for a share that is theirs.
type Progress int

const (
	// Unknown means that the sync could not tell; what an earlier one told still holds.
	Unknown Progress = iota
	// UnderWay means that the object is in the midst of a change.
	UnderWay
	// AtRest means that it is not.
	AtRest
)

// Loop syncs keys. The exported fields must not change once Run was called.
//
// A Loop can run several times, one after the other: a controller runs it once
// for each time that it is elected. What is enqueued in between is dropped;
// every run starts with Seed.
type Loop struct {
	// Name in logs and metrics.
	Name string
	// Sync brings one key a step on. With an error it is called again after a backoff,
	// or Result.After if that is less.
	Sync func(ctx context.Context, key Key) (Result, error)
	// Seed lists the keys that a run starts with.
	Seed func() []Key
	// Transient says whether an error will go away for all keys at once.
	Transient func(error) bool
	// Workers is how many keys are synced at a time.
	Workers int
	// Metrics may be nil.
	Metrics *Metrics
	// Clock is the real one if nil.
	Clock clock.WithTicker

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[Key] // nil while not running
	limiter workqueue.TypedRateLimiter[Key]
	pace    pace
	order   *order
	busy    atomic.Int32 // workers that have a key
}

// Enqueue has the key synced soon. It may be called from anywhere, any number of
// times.
func (l *Loop) Enqueue(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		return
	}
	backlog := l.queue.Len() > l.Workers-int(l.busy.Load()) // a key that an idle worker is about to take does not wait
	if after, ok := l.pace.schedule(key, l.Clock.Now(), backlog); ok {
		l.queue.AddAfter(key, after)
	}
}

// Run syncs keys until ctx ends, and returns when the last sync under way has.
// Syncs get the context work, which may outlive ctx so that they can finish.
func (l *Loop) Run(ctx, work context.Context) {
	queue := l.start()
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()

	for _, key := range l.Seed() {
		l.Enqueue(key)
	}
	var workers sync.WaitGroup
	for range l.Workers {
		workers.Go(func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				l.busy.Add(1)
				if ctx.Err() == nil { // a queue that shuts down still hands out what it holds
					l.process(work, queue, key)
				}
				l.busy.Add(-1)
				queue.Done(key)
			}
		})
	}
	workers.Wait()

	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = nil
}

func (l *Loop) start() workqueue.TypedRateLimitingInterface[Key] {
	if l.Clock == nil {
		l.Clock = clock.RealClock{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order = newOrder()
	config := workqueue.TypedQueueConfig[Key]{Name: l.Name, Clock: l.Clock, Queue: l.order}
	if l.Metrics != nil {
		config.MetricsProvider = l.Metrics
	}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
		Name: config.Name, Clock: config.Clock, MetricsProvider: config.MetricsProvider, Queue: workqueue.NewTypedWithConfig(config)})
	l.limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[Key](backoffMin, backoffMax)
	l.queue = workqueue.NewTypedRateLimitingQueueWithConfig(l.limiter, workqueue.TypedRateLimitingQueueConfig[Key]{DelayingQueue: delaying})
	l.pace = pace{keys: map[Key]*debounce{}}
	return l.queue
}

func (l *Loop) process(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Key], key Key) {
	logger := klog.FromContext(ctx).WithValues("queue", l.Name, "key", key)
	began := l.Clock.Now()
	l.paced(func(p *pace) { p.began(key, began) })

	result, err := l.call(klog.NewContext(ctx, logger), key)

	ended := l.Clock.Now()
	took := ended.Sub(began)
	l.paced(func(p *pace) { p.ended(key, took-result.Writing, ended) })
	l.order.set(key, result.Progress)
	l.Metrics.synced(l.Name, took, err)
	if err == nil {
		queue.Forget(key)
		if result.After > 0 {
			queue.AddAfter(key, result.After)
		}
		return
	}
	if ctx.Err() != nil {
		return // the run is being broken off, and the next one starts with every key
	}
	delay := l.limiter.When(key)
	if result.After > 0 {
		delay = min(delay, result.After)
	}
	if l.Transient != nil && l.Transient(err) {
		delay = min(delay, backoffMaxTransient)
	}
	logger.Error(err, "Sync failed", "retryAfter", delay, "failures", queue.NumRequeues(key))
	queue.AddAfter(key, delay)
}

func (l *Loop) paced(f func(*pace)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.pace)
}

// call is Sync with panics turned into errors.
func (l *Loop) call(ctx context.Context, key Key) (result Result, err error) {
	err = l.Contain(func() (err error) {
		result, err = l.Sync(ctx, key)
		return err
	})
	return result, err
}

// Contain calls f, and turns a panic into an error, which is counted. What works for single
// objects beside the syncs is called so, too.
func (l *Loop) Contain(f func() error) error {
	return l.Metrics.Contain(l.Name, f)
}

// Soonest of the durations after which a sync wants to be called again, of which 0
// means never.
func Soonest(ds ...time.Duration) time.Duration {
	var out time.Duration
	for _, d := range ds {
		if d > 0 && (out == 0 || d < out) {
			out = d
		}
	}
	return out
}
