// Package app is the shell of the kind App. It shows the planner what the cluster
// looks like, carries out what the planner says, and decides nothing itself.
//
//	informers.go  caches, and what each event enqueues
//	sync.go       one step of one App: view, plan, act, status
//	view.go       what the planner sees, from the caches or live
//	act.go        carries out an action
//	status.go     writes the status, and holds back what will soon be another one
//
// What it does to the API, and needs permission for:
//
//	apps.appcontroller.k8s.io         get list watch
//	apps.appcontroller.k8s.io/status  patch
//	deployments, services             get list watch create patch delete
//	events                            create
package app

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/controller/write"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
	plan "tkestack.io/tapp/plan/app"
)

// flushTimeout bounds what is told of at the end: the last statuses and events.
const flushTimeout = 5 * time.Second

// Clients of the API server.
type Clients struct {
	Apps        client.AppsGetter
	Deployments appsv1client.DeploymentsGetter
	Services    corev1client.ServicesGetter
}

// Options of a Controller. All fields are required but those that say otherwise.
type Options struct {
	// Clients read and write.
	Clients
	// Events may have a rate limit of its own.
	Events corev1client.EventsGetter
	// Watching fills the caches.
	Watching Clients
	// Namespace to look after; empty: all.
	Namespace string
	// Workers is how many Apps are worked on at a time.
	Workers int
	// Metrics and Queue are registered by the caller.
	Metrics *Metrics
	Queue   *loop.Metrics
	// Host names this process in events.
	Host string
	// Incoming is called with each of the Apps before it is cached, and with the one that it replaces;
	// nil: nobody looks.
	Incoming func(before, now metav1.Object)
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Controller looks after Apps.
type Controller struct {
	Options
	// Informers are those below, of which a Controller has Watch and HasSynced.
	cache.Informers
	loop     *loop.Loop
	recorder *events.Recorder

	apps        client.AppInformer
	deployments toolscache.TypedSharedIndexInformer[*appsv1.Deployment]
	services    toolscache.TypedSharedIndexInformer[*corev1.Service]

	observer      cache.Observer[*view]
	statusMetrics statusMetrics

	// working is true while Run plans and writes.
	working atomic.Bool
	// stopping is true from when Run was told to end: no further write starts.
	stopping atomic.Bool
	writes   *write.Writer
	statuses *status.Writer
	objects  cache.PerObject[object]
}

// New makes a controller whose caches are empty until Watch is called.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{Options: o, statusMetrics: newStatusMetrics(), writes: write.NewWriter(o.Clock, 1), statuses: status.NewWriter(o.Clock, statusInterval, statusHold)}
	c.recorder = events.NewRecorder(events.Options{Client: o.Events, Component: appv1.Component, Host: o.Host, Clock: o.Clock, Contain: o.Queue.Container("events")})
	c.loop = &loop.Loop{
		Name: "app", Workers: o.Workers, Clock: o.Clock, Metrics: o.Queue,
		Sync: c.sync, Seed: func() []loop.Key { return cache.Keys(c.apps) }, Transient: write.IsTransient,
	}
	c.observer.Clock, c.observer.Repairs = o.Clock, o.Metrics.staleRepairs
	if err := c.makeInformers(); err != nil {
		return nil, err
	}
	return c, nil
}

// Run looks after the Apps until ctx ends, and returns when nothing is under way
// any more. Syncs under way get the context work, which may outlive ctx so that
// they can finish their writes. Caches may lack what an earlier leader wrote: every
// write is conditional on what was observed.
func (c *Controller) Run(ctx, work context.Context) {
	if !toolscache.WaitForCacheSync(ctx.Done(), c.HasSynced) {
		return
	}
	c.objects.Clear()

	c.stopping.Store(false)
	c.working.Store(true)
	defer c.working.Store(false)
	stop := context.AfterFunc(ctx, func() { c.stopping.Store(true) })
	defer stop()
	told, tell := context.WithCancel(work)
	var beside sync.WaitGroup
	beside.Go(func() { c.recorder.Run(told) })
	c.loop.Run(ctx, work)
	tell()
	beside.Wait()

	ctx, cancel := context.WithTimeout(work, flushTimeout)
	defer cancel()
	c.flushStatuses(ctx)
	c.recorder.Flush(ctx)
	klog.FromContext(ctx).Info("Stopped working on Apps")
}

// Naming returns the Apps in the cache that name a child of this kind and name.
func (c *Controller) Naming(kind, namespace, name string) ([]*appv1.App, error) {
	return c.apps.GetTypedIndexer().ByTypedIndex(byChild, childKey(plan.Kind(kind), namespace, name))
}

// Objects are the Apps in the cache. They are shared: copy before writing to one.
func (c *Controller) Objects() []metav1.Object { return cache.Objects(c.apps) }
