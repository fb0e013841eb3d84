// Package appset is the shell of the kind AppSet. It shows the planner what the hub and
// the clusters look like, carries out what the planner says, and decides nothing itself.
//
//	fleet.go       what it needs of the clusters
//	informers.go   caches, and what each event enqueues
//	sync.go        one step of one AppSet: view, plan, act, status
//	view.go        what the planner sees
//	parts.go       what was written to clusters and their caches may lack
//	act.go         carries out actions in clusters, side by side
//	own.go         writes the AppSet's own metadata, and what it asks for before
//	keep.go        the ControllerRevisions with the record of a rollout, and what was stable
//	tombstones.go  the ConfigMaps that tell of parts which were given up
//	charts.go      the archives of charts on the hub; keptcharts.go those in clusters;
//	               sweep.go drops those that nothing uses
//	status.go      writes the status, and holds back what will soon be another one
//
// What it does to the API of the hub, and needs permission for:
//
//	appsets.workload.dmall.com         get list watch patch
//	appsets.workload.dmall.com/status  patch
//	confirmations.workload.dmall.com   list watch
//	controllerrevisions.apps           get list watch create patch delete
//	configmaps (one namespace)         list watch create delete
//	secrets (one namespace)            get list create patch delete
//	events                             create
//
// and of the clusters:
//
//	advdeployments.workload.dmall.com  get list watch create patch delete
//	secrets (one namespace)            list create patch delete
package appset

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"

	"tkestack.io/tapp/controller/write"
)

// flushTimeout bounds what is told of at the end: the last statuses and events.
const flushTimeout = 5 * time.Second

// Clients of the hub's API server.
type Clients struct {
	AppSets    client.AppSetsGetter
	ConfigMaps corev1client.ConfigMapsGetter
	// Apps has the ControllerRevisions.
	Apps          appsv1client.ControllerRevisionsGetter
	Confirmations client.ConfirmationsGetter
}

// Options of a Controller. All fields are required but those that say otherwise.
type Options struct {
	// Clients read and write.
	Clients
	// Events may have a rate limit of its own.
	Events corev1client.EventsGetter
	// Watching fills the caches.
	Watching Clients
	// Fleet are the clusters. FleetID is what their parts are marked with; it is asked for
	// when the fleet has synced.
	Fleet   Fleet
	FleetID func() string
	// Charts stores the archives of charts on the hub, and ChartHeads lists them without
	// the archives. Fetch gets one from its place; nil: none are fetched. SweepAge is how old
	// one has to be that is dropped since nothing uses it; 0: an hour.
	Charts     corev1client.SecretInterface
	ChartHeads metadata.ResourceInterface
	Fetch      func(ctx context.Context, url, version string) ([]byte, error)
	SweepAge   time.Duration
	// Namespace to look after; empty: all.
	Namespace string
	// Tombstones is the namespace of the ConfigMaps that tell of parts which were given up.
	Tombstones string
	// Workers is how many AppSets are worked on at a time.
	Workers int
	// Metrics and Queue are registered by the caller.
	Metrics *Metrics
	Queue   *loop.Metrics
	// Host names this process in events.
	Host string
	// Incoming is called with each of the AppSets before it is cached, and with the one that it replaces;
	// nil: nobody looks.
	Incoming func(before, now metav1.Object)
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Controller looks after AppSets.
type Controller struct {
	Options
	informers cache.Informers
	loop      *loop.Loop
	recorder  *events.Recorder

	appSets       client.AppSetInformer
	tombstones    toolscache.TypedSharedIndexInformer[*corev1.ConfigMap]
	revisions     toolscache.TypedSharedIndexInformer[*appsv1.ControllerRevision]
	confirmations client.ConfirmationInformer

	observer      cache.Observer[*view]
	statusMetrics statusMetrics

	// working is true while Run plans and writes.
	working atomic.Bool
	// stopping is true from when Run was told to end: no further write starts.
	stopping atomic.Bool
	statuses *status.Writer
	objects  cache.PerObject[object]
	charts   charts
	// planning is full while as many plans are made as may be.
	planning chan struct{}
	// parts are the names of which some cluster has, or had, a part.
	parts names
}

// New makes a controller whose caches are empty until Watch is called.
func New(o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.SweepAge = cmp.Or(o.SweepAge, defaultSweepAge)
	c := &Controller{Options: o, planning: make(chan struct{}, runtime.GOMAXPROCS(0)), charts: charts{mu: make(lock, 1)}, statusMetrics: newStatusMetrics(), statuses: status.NewWriter(o.Clock, statusInterval, statusHold)}
	c.recorder = events.NewRecorder(events.Options{Client: o.Events, Component: v1beta1.Component, Host: o.Host, Clock: o.Clock, Contain: o.Queue.Container("events")})
	c.loop = &loop.Loop{
		Name: "appset", Workers: o.Workers, Clock: o.Clock, Metrics: o.Queue,
		Sync: c.sync, Seed: c.seed, Transient: write.IsTransient,
	}
	c.observer.Clock, c.observer.Repairs = o.Clock, o.Metrics.staleRepairs
	if err := c.makeInformers(); err != nil {
		return nil, err
	}
	c.Fleet.Subscribe(c.memberChanged, c.partChanged)
	return c, nil
}

// Watch fills the caches of the hub and keeps them current until ctx ends. The fleet's
// are the caller's.
func (c *Controller) Watch(ctx context.Context) { c.informers.Watch(ctx) }

// HasSynced says whether the caches have been filled. Clusters that cannot be heard are
// not waited for.
func (c *Controller) HasSynced() bool { return c.informers.HasSynced() && c.Fleet.HasSynced() }

// Run looks after the AppSets until ctx ends, and returns when nothing is under way any
// more. Syncs under way get the context work, which may outlive ctx so that they can
// finish their writes. Caches may lack what an earlier leader wrote: every write is
// conditional on what was observed, and what counts as gone is read live.
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
	beside.Go(func() { c.sweepCharts(ctx) })
	c.loop.Run(ctx, work)
	tell()
	beside.Wait()

	ctx, cancel := context.WithTimeout(work, flushTimeout)
	defer cancel()
	c.flushStatuses(ctx)
	c.recorder.Flush(ctx)
	klog.FromContext(ctx).Info("Stopped working on AppSets")
}

// Objects are the AppSets in the cache. They are shared: copy before writing to one.
func (c *Controller) Objects() []metav1.Object { return cache.Objects(c.appSets) }
