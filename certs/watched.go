package certs

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	// lookAgain is how often things are compared without an event: CAs get old, and leave a
	// bundle when their time has come.
	lookAgain = 10 * time.Second
	// tryAgain is how long is waited after an error.
	tryAgain = time.Second
)

// objects of a kind, in a namespace or of the cluster.
type objects[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// watched is one object by its name, as a cache has it.
type watched[T runtime.Object] struct {
	key   cache.ObjectName
	store cache.Store
	cache cache.Controller
}

// watchOne makes the cache of one object; example is one of its type. It calls report at
// each event, once it runs.
//
// The factory of client-go's informers would do, but links the clients of all kinds: they
// were a quarter of the program.
func watchOne[T, L runtime.Object](of objects[L], key cache.ObjectName, example T, report func()) *watched[T] {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String()
	w := &watched[T]{key: key}
	w.store, w.cache = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: one{&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = selector
				return of.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = selector
				return of.Watch(ctx, o)
			},
		}},
		ObjectType: example,
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: func(any) { report() }, UpdateFunc: func(any, any) { report() }, DeleteFunc: func(any) { report() }},
	})
	return w
}

// one is listed, and not streamed: there is nothing to save with a single object.
type one struct{ *cache.ListWatch }

func (one) IsWatchListSemanticsUnSupported() bool { return true }

// get returns the object, and false if the cluster has none. Nobody may change it.
func (w *watched[T]) get() (object T, there bool) {
	stored, there, _ := w.store.GetByKey(w.key.String())
	if !there {
		return object, false
	}
	return stored.(T), true
}

// runner fills a cache until ctx ends.
type runner interface {
	RunWithContext(ctx context.Context)
	HasSynced() bool
}

// fill runs caches until ctx ends, and returns when they are filled, or ctx has ended.
// ended waits until nothing of them runs any more.
func fill(ctx context.Context, caches ...runner) (ended func(), err error) {
	var running sync.WaitGroup
	var synced []cache.InformerSynced
	for _, c := range caches {
		running.Go(func() { c.RunWithContext(ctx) })
		synced = append(synced, c.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		running.Wait()
		return nil, context.Cause(ctx)
	}
	return running.Wait, nil
}

// announce without waiting: who has not heard the last one hears of both at once.
func announce(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// atEach event work is done, and from time to time without one, until ctx ends. What fails is
// tried again soon.
func atEach(ctx context.Context, event <-chan struct{}, work func() error) {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	for {
		wait := lookAgain
		if work() != nil {
			wait = tryAgain
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-event:
		case <-timer.C:
		}
	}
}
