package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

const (
	// debounce is how long to wait for more changes before the next plan.
	debounce = 100 * time.Millisecond
	// resyncPeriod is how often to plan without a change: some plans depend on the time.
	resyncPeriod = 5 * time.Second
)

// follow plans at every change of a TApp or its pods, until done says so or the context
// ends. Interrupted watches are resumed.
func (s *session) follow(ctx context.Context, t *tappv1.TApp, done func(*observed) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	tapps, err := watchAll(ctx, s.namedTApp(t.Name), &tappv1.TApp{}, notify)
	if err != nil {
		return err
	}
	pods, err := watchAll(ctx, s.podsOf(t), &corev1.Pod{}, notify)
	if err != nil {
		return err
	}
	for {
		o, err := s.stored(ctx, t.UID, tapps, pods)
		if err != nil {
			return err
		}
		if end, err := done(o); end || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(resyncPeriod):
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(debounce):
		}
	}
}

// watchAll fills a store, and keeps it up to date until the context ends.
func watchAll(ctx context.Context, lw *cache.ListWatch, object runtime.Object, notify func()) (cache.Store, error) {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(_, _ any) { notify() },
		DeleteFunc: func(any) { notify() },
	}
	failed := make(chan error, 1)
	informer := cache.NewSharedInformer(lw, object, 0)
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		select {
		case failed <- err:
		default:
		}
	})
	if err != nil {
		return nil, fmt.Errorf("preparing a watch: %w", err)
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return nil, fmt.Errorf("preparing a watch: %w", err)
	}
	go informer.RunWithContext(ctx)
	synced := make(chan struct{})
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			close(synced)
		}
	}()
	select {
	case <-synced:
		return informer.GetStore(), nil
	case err := <-failed: // before it ever worked, for example forbidden
		return nil, fmt.Errorf("watching %T: %w", object, err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *session) namedTApp(name string) *cache.ListWatch {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return s.tapps.TApps(s.namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return s.tapps.TApps(s.namespace).Watch(ctx, o)
		},
	}
}

func (s *session) podsOf(t *tappv1.TApp) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = tappv1.LabelInstanceID
			return s.core.Pods(t.Namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = tappv1.LabelInstanceID
			return s.core.Pods(t.Namespace).Watch(ctx, o)
		},
	}
}

// stored plans by what the stores hold of the TApp.
func (s *session) stored(ctx context.Context, uid types.UID, tapps, pods cache.Store) (*observed, error) {
	var t *tappv1.TApp
	for _, object := range tapps.List() {
		if found := object.(*tappv1.TApp); found.UID == uid {
			t = found
		}
	}
	if t == nil {
		return nil, errors.New("the TApp was deleted")
	}
	list := make([]*corev1.Pod, 0, len(pods.List()))
	for _, object := range pods.List() {
		list = append(list, object.(*corev1.Pod))
	}
	return s.compute(ctx, t, list)
}
