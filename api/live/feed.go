package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// Resource of a feed.
type Resource string

// FeedKey names a feed: a resource in a namespace, or in all.
type FeedKey struct {
	Resource  Resource
	Namespace string
}

// Source is where the objects of a feed come from.
type Source struct {
	Client  any
	Example runtime.Object
	Label   string
	Lists   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watches func(context.Context, metav1.ListOptions) (watch.Interface, error)
	Index   toolscache.Indexers
	// Transform drops what is not shown.
	Transform toolscache.TransformFunc
}

// feed is a shared watch of a list: it keeps the objects in memory while somebody uses it,
// and for a while after.
type feed struct {
	key      FeedKey
	informer toolscache.SharedIndexInformer
	stop     context.CancelFunc
	done     chan struct{}

	mu sync.Mutex
	// failed and since tell of lists and watches that fail; nil: the last one did not.
	failed error
	since  time.Time
	told   map[*Topic]struct{}
}

// feeds are those in use.
type feeds struct {
	ctx   context.Context //nolint:containedctx // feeds begin and end while it lasts
	make  func(FeedKey) (Source, error)
	pulse pulse
	kept  kept[FeedKey, *feed]
	run   sync.WaitGroup
}

// acquire a feed, which then tells the topic of changes. The function that is returned ends that.
func (f *feeds) acquire(key FeedKey, user *Topic) (*feed, func(), error) {
	one, leave, err := f.kept.acquire(key, func(int) (*feed, error) { return f.begin(key) })
	if err != nil {
		return nil, nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.told[user] = struct{}{}
	return one, func() {
		one.forget(user)
		leave()
	}, nil
}

// forget a topic.
func (f *feed) forget(user *Topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.told, user)
}

func (f *feed) end() { f.stop() }

// close ends all feeds, and returns when they have ended.
func (f *feeds) close() {
	f.kept.close()
	f.run.Wait()
}

func (f *feeds) begin(key FeedKey) (*feed, error) {
	s, err := f.make(key)
	if err != nil {
		return nil, err
	}
	if f.ctx.Err() != nil {
		return nil, errors.New("the server is ending")
	}
	one := &feed{key: key, told: map[*Topic]struct{}{}, done: make(chan struct{})}
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = s.Label
			list, err := s.Lists(ctx, o)
			one.note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = s.Label
			w, err := s.Watches(ctx, o)
			one.note(err)
			return w, err
		},
	}
	one.informer = toolscache.NewSharedIndexInformerWithOptions(toolscache.ToListWatcherWithWatchListSemantics(lw, s.Client), s.Example,
		toolscache.SharedIndexInformerOptions{Indexers: s.Index, ObjectDescription: string(key.Resource)})
	if err := one.informer.SetTransform(s.Transform); err != nil {
		return nil, fmt.Errorf("watching %s: %w", key.Resource, err)
	}
	if _, err := one.informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(o any, _ bool) { one.tell(o) },
		UpdateFunc: func(_, o any) { one.tell(o) },
		DeleteFunc: one.tell,
	}); err != nil {
		return nil, fmt.Errorf("watching %s: %w", key.Resource, err)
	}
	ctx, stop := context.WithCancel(f.ctx)
	one.stop = stop
	f.run.Go(func() {
		defer close(one.done)
		defer stop()
		one.informer.RunWithContext(ctx)
	})
	f.run.Go(func() { // an empty list causes no event, but has been read
		if toolscache.WaitForCacheSync(ctx.Done(), one.informer.HasSynced) {
			one.tellAll()
		}
	})
	return one, nil
}

// note the result of a list or a watch.
func (f *feed) note(err error) {
	f.mu.Lock()
	before := f.failed
	switch {
	case err == nil:
		f.failed = nil
	case errors.Is(err, context.Canceled):
	case apierrors.IsInvalid(err), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		// An older server that does not stream lists, or a watch that begins anew: it is listed
		// at once.
	case f.failed == nil:
		f.failed, f.since = err, time.Now()
	default:
		f.failed = err
	}
	changed := (before == nil) != (f.failed == nil)
	f.mu.Unlock()
	if changed {
		f.tellAll()
	}
}

// trouble is why the feed is not current, and since when; nil: it is current.
func (f *feed) trouble() (since time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.since, f.failed
}

func (f *feed) tell(object any) {
	name, err := toolscache.DeletionHandlingObjectToName(object)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for t := range f.told {
		t.changed(f.key.Resource, name)
	}
}

func (f *feed) tellAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for t := range f.told {
		t.wake()
	}
}

// feelPulse asks whether the API server answers, until the feeds end.
func (f *feeds) feelPulse() {
	f.pulse.run(f.ctx, func() bool { return f.kept.count() > 0 }, func() { f.kept.each((*feed).tellAll) })
}
