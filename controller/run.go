package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/app"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/tapp"
	appv1 "tkestack.io/tapp/crd/app/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/process"
)

// watchdogMargin is how long a leader may hold on to an expired lease before
// /healthz has the kubelet restart it.
const watchdogMargin = 20 * time.Second

// Run looks after the kinds, and serves metrics and health, until ctx ends: then it
// finishes the writes under way, gives up the lease, and returns nil.
func Run(ctx context.Context, c Config) error {
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	process.NewMetrics(c.Registry, c.Version)
	replica, err := New(c)
	if err != nil {
		return err
	}
	listener := c.Listener
	if listener == nil {
		if listener, err = process.Listen(c.MetricsAddress); err != nil {
			return err
		}
	}
	parts := process.NewParts(ctx)
	// The server starts first: a pod whose CRDs are still being applied is alive.
	if listener != nil {
		handler := process.Endpoints(c.Registry, process.Health{Healthy: replica.Healthy, Ready: replica.Ready})
		parts.Run(func(ctx context.Context) error { return process.Serve(ctx, listener, handler) })
	}
	parts.Run(replica.Run)
	return parts.Wait()
}

// Replica is one of the replicas of the controllers. It keeps its caches current
// for as long as it runs, and works while it is the leader.
type Replica struct {
	config  Config
	clients *clients
	host    string
	// tapps and apps are nil where their kind is not looked after.
	tapps    *tapp.Controller
	apps     *app.Controller
	kinds    []kind
	leading  prometheus.Gauge
	watchdog *leaderelection.HealthzAdaptor
}

// New makes a replica and registers its metrics. Nothing is asked of the API
// server before it runs.
func New(c Config) (*Replica, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	clients, err := c.newClients(newRequestMetrics(c.Registry))
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host's name: %w", err)
	}
	r := &Replica{
		config: c, clients: clients, host: host,
		leading: promauto.With(c.Registry).NewGauge(prometheus.GaugeOpts{Name: "tapp_leader",
			Help: "1 while this replica is the one that works."}),
		watchdog: leaderelection.NewLeaderHealthzAdaptor(watchdogMargin),
	}
	queue := loop.NewMetrics(c.Registry)
	if c.has(KindTApp) {
		if r.tapps, err = c.newTApps(clients, queue, host); err != nil {
			return nil, err
		}
		r.kinds = append(r.kinds, r.tapps)
	}
	if c.has(KindApp) {
		if r.apps, err = c.newApps(clients, queue, host); err != nil {
			return nil, err
		}
		r.kinds = append(r.kinds, r.apps)
	}
	for _, k := range r.kinds {
		c.Registry.MustRegister(k)
	}
	return r, nil
}

// Healthy is nil unless the replica holds on to a lease that has expired.
func (r *Replica) Healthy(request *http.Request) error { return r.watchdog.Check(request) }

// Ready is nil once the caches are filled, also those of a standby.
func (r *Replica) Ready() error {
	if slices.ContainsFunc(r.kinds, func(k kind) bool { return !k.HasSynced() }) {
		return errors.New("the caches are not filled yet")
	}
	return nil
}

// TApps of a namespace from the cache, or of all by an empty one. They are shared:
// copy before writing to one.
func (r *Replica) TApps(_ context.Context, namespace string) ([]*tappv1.TApp, error) {
	if err := r.Ready(); err != nil {
		return nil, err
	}
	if r.tapps == nil {
		return nil, errors.New("no TApps are looked after")
	}
	return r.tapps.Lister().TApps(namespace).List(labels.Everything())
}

// Pods from the cache that a TApp owns, may adopt, or that have the names of its
// instances. They are shared: copy before writing to one.
func (r *Replica) Pods(_ context.Context, t *tappv1.TApp) ([]*corev1.Pod, error) {
	if err := r.Ready(); err != nil {
		return nil, err
	}
	if r.tapps == nil {
		return nil, errors.New("no TApps are looked after")
	}
	return r.tapps.Pods(t)
}

// AppsNaming are the Apps in the cache that name a child of this kind and name. They
// are shared: copy before writing to one.
func (r *Replica) AppsNaming(_ context.Context, kind, namespace, name string) ([]*appv1.App, error) {
	if err := r.Ready(); err != nil {
		return nil, err
	}
	if r.apps == nil {
		return nil, errors.New("no Apps are looked after")
	}
	return r.apps.Naming(kind, namespace, name)
}

// Run looks after the kinds until ctx ends: then it finishes the writes under way,
// gives up the lease, and returns nil.
func (r *Replica) Run(ctx context.Context) error {
	klog.FromContext(ctx).Info("Starting the controllers", "version", r.config.Version)
	if r.config.CreateCRD {
		if err := ensureCRDs(ctx, r.clients.dynamic, r.config.crdKinds()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	// The caches are current for longer than it works.
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var caches sync.WaitGroup
	for _, k := range r.kinds {
		caches.Go(func() { k.Watch(watching) })
	}
	defer caches.Wait()
	defer stopWatching()

	if e := r.config.Election; e.Enabled {
		return e.campaign(ctx, candidate{
			leases: r.clients.leases, identity: r.host + "_" + uuid.NewString(),
			grace: r.config.Grace, watchdog: r.watchdog, do: r.work,
		})
	}
	t := newTerm(ctx, r.config.Grace, r.work)
	stop := context.AfterFunc(ctx, t.end)
	defer stop()
	t.begin()
	return nil
}

// work is what the leader does.
func (r *Replica) work(ctx, underWay context.Context) {
	r.leading.Set(1)
	defer r.leading.Set(0)
	var working sync.WaitGroup
	for _, k := range r.kinds {
		working.Go(func() { k.Run(ctx, underWay) })
	}
	working.Wait()
}
