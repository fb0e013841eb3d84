package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/api/answer"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/process/parallel"
)

const (
	// debounce is how long changes are collected before they are shown: it bounds what 200
	// changes a second cost.
	debounce = 200 * time.Millisecond
	// share of the time that a topic may spend on computing is one part of so many.
	share = 5
)

// errNotYet is the error of a topic whose feeds are not filled yet.
var errNotYet = errors.New("the objects are not known yet")

// Computation makes what a topic shows. It returns after how long time alone may change it;
// 0: it cannot.
type Computation func(ctx context.Context, t *Topic, before *Shown) (*Shown, time.Duration, error)

// Topic is something that is shown: it is computed once for all who look at it, and anew
// when the objects change that it is made of.
type Topic struct {
	name    string
	compute Computation
	topics  *Topics
	// about says whether a change concerns the topic; nil: each one does.
	about func(r Resource, name toolscache.ObjectName) bool

	dirty chan struct{} // holds one: there is something new
	stop  context.CancelFunc

	mu    sync.Mutex
	feeds map[FeedKey]*feed
	leave []func() // the feeds
	now   *Shown
	err   error // instead of now
	// health of what is shown.
	health apiv1.Health
	// next is closed and replaced when now, err or health change.
	next chan struct{}
}

func (t *Topic) end() { t.stop() }

// run computes until ctx ends.
func (t *Topic) run(ctx context.Context) {
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, leave := range t.leave {
			leave()
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		began := time.Now()
		again := t.update(ctx)
		pause := max(debounce, share*time.Since(began))
		if !sleep(ctx, timer, pause) {
			return
		}
		var later <-chan time.Time
		if again > 0 {
			timer.Reset(max(again-pause, 0))
			later = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-t.dirty:
		case <-later:
		}
	}
}

// sleep returns false if ctx ended.
func sleep(ctx context.Context, timer *time.Timer, d time.Duration) bool {
	timer.Reset(d)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// update computes once. It returns when to look again without a change.
func (t *Topic) update(ctx context.Context) time.Duration {
	select {
	case t.topics.turns <- struct{}{}:
		defer func() { <-t.topics.turns }()
	case <-ctx.Done():
		return 0
	}
	select {
	case <-t.dirty: // what it stands for is computed now
	default:
	}
	t.mu.Lock()
	before := t.now
	t.mu.Unlock()
	now, again, err := t.computed(ctx, before)
	health, trouble := t.trouble()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return 0
	case errors.Is(err, errNotYet) && trouble == nil: // the feeds will tell
		return again
	case errors.Is(err, errNotYet):
		err = trouble
	case err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
		klog.FromContext(ctx).Error(err, "Nothing can be shown", "topic", t.name)
	}
	if err != nil {
		now = nil
	}
	if now != nil && before != nil && now.ID == before.ID {
		now = before
	}
	same := now == t.now && (err == nil) == (t.err == nil) && health.Degraded == t.health.Degraded
	t.now, t.err, t.health = now, err, health
	if !same {
		close(t.next)
		t.next = make(chan struct{})
	}
	return again
}

// computed is compute with panics turned into errors: an object that triggers a bug is not
// shown, and all others are.
func (t *Topic) computed(ctx context.Context, before *Shown) (now *Shown, again time.Duration, err error) {
	err = parallel.Contain(t.topics.panicked, func() (err error) {
		now, again, err = t.compute(ctx, t, before)
		return err
	})
	return now, again, err
}

// trouble of the feeds: what is told of it, and as an error.
func (t *Topic) trouble() (apiv1.Health, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.feeds {
		if since, err := f.trouble(); err != nil {
			asOf := metav1.NewTime(since)
			if apierrors.IsForbidden(err) {
				return apiv1.Health{Degraded: err.Error(), AsOf: &asOf}, err
			}
			if apierrors.IsNotFound(err) { // its CustomResourceDefinition is not installed
				gone := answer.NotFound("this cluster has no %s", f.key.Resource)
				return apiv1.Health{Degraded: gone.Error(), AsOf: &asOf}, gone
			}
			text := fmt.Sprintf("the API server cannot be asked about %s: %s", f.key.Resource, answer.Words(err))
			return apiv1.Health{Degraded: text, AsOf: &asOf}, apierrors.NewServiceUnavailable(text)
		}
	}
	if answered, err := t.topics.feeds.pulse.trouble(); err != nil {
		text := "the API server cannot be asked: " + answer.Words(err)
		return apiv1.Health{Degraded: text, AsOf: apiv1.Present(metav1.NewTime(answered))}, apierrors.NewServiceUnavailable(text)
	}
	return apiv1.Health{}, nil
}

// Feed gives access to the objects of a resource. Until they are known it returns an error that a
// Computation returns; the topic is computed again then.
func (t *Topic) Feed(r Resource, namespace string) (toolscache.Indexer, error) {
	key := FeedKey{r, namespace}
	t.mu.Lock()
	one := t.feeds[key]
	t.mu.Unlock()
	if one == nil {
		var leave func()
		var err error
		if one, leave, err = t.topics.feeds.acquire(key, t); err != nil {
			return nil, err
		}
		t.mu.Lock()
		t.feeds[key], t.leave = one, append(t.leave, leave)
		t.mu.Unlock()
	}
	if !one.informer.HasSynced() {
		return nil, errNotYet
	}
	return one.informer.GetIndexer(), nil
}

// changed is called by feeds.
func (t *Topic) changed(r Resource, name toolscache.ObjectName) {
	if t.about == nil || t.about(r, name) {
		t.wake()
	}
}

func (t *Topic) wake() {
	select {
	case t.dirty <- struct{}{}:
	default:
	}
}

// Look returns what is shown now, and what is closed when that changes.
func (t *Topic) Look() (now *Shown, health apiv1.Health, next <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now, t.health, t.next, t.err
}

// Current waits until there is something to show.
func (t *Topic) Current(ctx context.Context) (*Shown, apiv1.Health, error) {
	for {
		now, health, next, err := t.Look()
		if now != nil || err != nil {
			return now, health, err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, apiv1.Health{}, apierrors.NewServiceUnavailable("the API server does not answer in time")
		}
	}
}
