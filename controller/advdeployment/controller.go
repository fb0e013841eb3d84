// Package advdeployment is the shell of the kind AdvDeployment. It shows the planner what
// its cluster looks like, carries out what the planner says, and decides nothing itself.
//
//	informers.go  caches, and what each event enqueues
//	sync.go       one step of one AdvDeployment: view, plan, act, status
//	view.go       what the planner sees, from the caches or live
//	act.go        carries out an action
//	keep.go       what rollouts of AdvDeployments remember that no AppSet made
//	releases.go   Helm releases, for which controller/release reads and writes
//	status.go     writes the status, and holds back what will soon be another one
//
// What it does to the API, and needs permission for:
//
//	advdeployments.workload.dmall.com           get list watch patch
//	advdeployments.workload.dmall.com/status    patch
//	tapps, statefulsets, deployments, services  get list watch create patch delete
//	horizontalpodautoscalers                    list watch
//	controllerrevisions.apps                    get list watch create patch delete
//	confirmations.workload.dmall.com            list watch
//	events                                      create
package advdeployment

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/release"
	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/advdeployment"
)

// flushTimeout bounds what is told of at the end: the last statuses and events.
const flushTimeout = 5 * time.Second

// Clients of the API server.
type Clients struct {
	AdvDeployments client.AdvDeploymentsGetter
	// Children are of several kinds, of which only what all have in common is read.
	Children dynamic.Interface
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
	// Releases carries out the plans for Helm releases.
	Releases *release.Operator
	// Namespace to look after; empty: all.
	Namespace string
	// Workers is how many AdvDeployments are worked on at a time.
	Workers int
	// Metrics and Queue are registered by the caller.
	Metrics *Metrics
	Queue   *loop.Metrics
	// Host names this process in events.
	Host string
	// Incoming is called with each of the AdvDeployments before it is cached, and with the one that it replaces;
	// nil: nobody looks.
	Incoming func(before, now metav1.Object)
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

type childInformer = toolscache.TypedSharedIndexInformer[*unstructured.Unstructured]

// Controller looks after AdvDeployments.
type Controller struct {
	Options
	// Informers are those below, of which a Controller has Watch and HasSynced.
	cache.Informers
	loop     *loop.Loop
	recorder *events.Recorder

	deployments client.AdvDeploymentInformer
	// revisions and confirmations of AdvDeployments that no AppSet made.
	revisions     toolscache.TypedSharedIndexInformer[*appsv1.ControllerRevision]
	confirmations client.ConfirmationInformer
	children      map[plan.Kind]childInformer
	autoscalers   childInformer

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
	c := &Controller{
		Options: o, statusMetrics: newStatusMetrics(), writes: write.NewWriter(o.Clock, 1),
		statuses: status.NewWriter(o.Clock, statusInterval, statusHold), children: map[plan.Kind]childInformer{},
	}
	c.recorder = events.NewRecorder(events.Options{Client: o.Events, Component: v1beta1.Component, Host: o.Host, Clock: o.Clock, Contain: o.Queue.Container("events")})
	c.loop = &loop.Loop{
		Name: "advdeployment", Workers: o.Workers, Clock: o.Clock, Metrics: o.Queue,
		Sync: c.sync, Seed: func() []loop.Key { return cache.Keys(c.deployments) }, Transient: write.IsTransient,
	}
	c.observer.Clock, c.observer.Repairs = o.Clock, o.Metrics.staleRepairs
	if err := c.makeInformers(); err != nil {
		return nil, err
	}
	return c, nil
}

// Run looks after the AdvDeployments until ctx ends, and returns when nothing is under
// way any more. Syncs under way get the context work, which may outlive ctx so that they
// can finish their writes. Caches may lack what an earlier leader wrote: every write is
// conditional on what was observed.
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
	klog.FromContext(ctx).Info("Stopped working on AdvDeployments")
}

// Objects are the AdvDeployments in the cache. They are shared: copy before writing to one.
func (c *Controller) Objects() []metav1.Object { return cache.Objects(c.deployments) }
