// Package tapp is the shell of the kind TApp. It shows the planner what the
// cluster looks like, carries out what the planner says, and decides nothing
// itself.
//
//	informers.go  caches, and what each event enqueues
//	sync.go       one step of one TApp: snapshot, plan, apply, status
//	snapshot.go   what the planner sees, from the caches or live
//	apply.go      carries out a plan, as table.go says for each operation
//	status.go     writes the status, at most twice a second
//	events.go     tells of it, in ranges of ids rather than pod by pod
//
// What it does to the API, and needs permission for:
//
//	tapps                   get list watch patch
//	tapps/status            patch
//	pods                    get list watch create patch delete
//	pods/status             patch
//	pods/resize             patch
//	persistentvolumeclaims  list watch create patch delete
//	controllerrevisions     get list watch create patch delete
//	nodes                   get list
//	events                  create
package tapp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// flushTimeout bounds what is told of at the end: the last statuses and events.
const flushTimeout = 5 * time.Second

// Options of a Controller. All fields are required but those that say otherwise.
type Options struct {
	// TApps and Core read and write.
	TApps client.Interface
	Core  corev1client.CoreV1Interface
	Apps  Apps
	// Events may have a rate limit of its own, so that telling of writes does not
	// slow the writes.
	Events corev1client.EventsGetter
	// Watching fills the caches.
	Watching struct {
		TApps client.Interface
		Core  corev1client.CoreV1Interface
		Apps  appsv1client.ControllerRevisionsGetter
	}
	// Namespace to look after; empty: all.
	Namespace string
	// Workers is how many TApps are worked on at a time.
	Workers int
	// NodesPerSync is how many nodes one sync reads at most. When there are more, the next
	// sync goes on with those that follow: the planner asks again.
	NodesPerSync int
	// Policy is what the planner goes by beside the TApps. What the cluster can do is
	// asked when Run begins.
	Policy Policy
	// Metrics and Queue are registered by the caller.
	Metrics *Metrics
	Queue   *loop.Metrics
	// Host names this process in events.
	Host string
	// Incoming is called with each of the TApps before it is cached, and with the one that it replaces;
	// nil: nobody looks.
	Incoming func(before, now metav1.Object)
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Apps writes revisions, and reads StatefulSets that can make claims of a TApp's names.
type Apps interface {
	appsv1client.ControllerRevisionsGetter
	appsv1client.StatefulSetsGetter
}

// Policy is what the operator decided for all TApps.
type Policy = plan.Policy

// Controller looks after TApps.
type Controller struct {
	Options
	// Informers are those below, of which a Controller has Watch and HasSynced.
	cache.Informers
	loop       *loop.Loop
	recorder   recorder
	operations map[plan.Op]operation

	tapps  client.Informer
	lister client.Lister
	pods   toolscache.TypedSharedIndexInformer[*corev1.Pod]
	claims toolscache.TypedSharedIndexInformer[*corev1.PersistentVolumeClaim]
	// revisions without their data
	revisions toolscache.TypedSharedIndexInformer[*appsv1.ControllerRevision]

	observer      cache.Observer[*view]
	statusMetrics statusMetrics

	// working is true while Run plans and writes.
	working atomic.Bool
	// stopping is true from when Run was told to end: no further write starts.
	stopping atomic.Bool
	objects  cache.PerObject[object]
	writes   *write.Writer
	statuses *status.Writer
	// asks are questions under way, which syncs do not wait for.
	asks sync.WaitGroup
	// claimsLabelled is true from when a search for claims without their label found all.
	claimsLabelled bool
	// zones: every node has one, as it was read last.
	zones atomic.Bool
}

// New makes a controller whose caches are empty until Watch is called.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{Options: o, operations: operations(), writes: write.NewWriter(o.Clock, write.MaxConcurrent), statusMetrics: newStatusMetrics(),
		statuses: status.NewWriter(o.Clock, statusInterval, statusHold)}
	c.recorder = newRecorder(o)
	c.loop = &loop.Loop{
		Name: "tapp", Workers: o.Workers, Clock: o.Clock, Metrics: o.Queue,
		Sync: c.sync, Seed: func() []loop.Key { return cache.Keys(c.tapps) }, Transient: write.IsTransient,
	}
	c.observer.Clock, c.observer.Repairs = o.Clock, o.Metrics.staleRepairs
	if err := c.makeInformers(); err != nil {
		return nil, err
	}
	return c, nil
}

// Run looks after the TApps until ctx ends, and returns when nothing is under way
// any more. Syncs under way get the context work, which may outlive ctx so that
// they can finish their writes.
func (c *Controller) Run(ctx, work context.Context) {
	if !c.awaitCaches(ctx) || !c.discover(ctx) {
		return
	}
	zonesAfter := c.readZones(ctx)
	c.objects.Clear()
	c.stopping.Store(false)
	c.working.Store(true)
	defer c.working.Store(false)
	stop := context.AfterFunc(ctx, func() { c.stopping.Store(true) })
	defer stop()

	told, tell := context.WithCancel(work)
	var beside sync.WaitGroup
	beside.Go(func() { c.recorder.Run(told) })
	beside.Go(func() { c.labelClaims(ctx) })
	beside.Go(func() { c.followZones(ctx, zonesAfter) })
	asking, stopAsking := context.WithCancel(work)
	c.loop.Run(ctx, asking)
	stopAsking()
	c.asks.Wait()
	tell()
	beside.Wait()

	ctx, cancel := context.WithTimeout(work, flushTimeout)
	defer cancel()
	c.flushStatuses(ctx)
	c.recorder.Flush(ctx)
	klog.FromContext(ctx).Info("Stopped working on TApps")
}

// awaitCaches waits for the caches, and after that until they have caught up
// with what an earlier leader wrote.
func (c *Controller) awaitCaches(ctx context.Context) bool {
	if !toolscache.WaitForCacheSync(ctx.Done(), c.HasSynced) {
		return false
	}
	c.catchUp(ctx)
	return ctx.Err() == nil
}

func (c *Controller) catchUp(ctx context.Context) {
	cache.CatchUp(ctx, c.Clock,
		cache.Resource{Store: c.tapps.GetStore(), List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.TApps.TApps(c.Namespace).List(ctx, o)
		}},
		cache.Resource{Store: c.pods.GetStore(), Label: tappv1.LabelInstanceID, List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.Core.Pods(c.Namespace).List(ctx, o)
		}},
	)
}

// Objects are the TApps in the cache. They are shared: copy before writing to one.
func (c *Controller) Objects() []metav1.Object { return cache.Objects(c.tapps) }
