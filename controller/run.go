package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/client-go/dynamic"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/process"
)

// watchdogMargin is how long a leader may hold on to an expired lease before
// /healthz fails, and the kubelet restarts it.
const watchdogMargin = 20 * time.Second

// Run looks after the kinds, and serves metrics and health, until ctx ends: then it
// finishes the writes under way, gives up the lease, and returns nil.
func Run(ctx context.Context, c Config) error {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Checks == nil {
		c.Checks = &process.Checks{}
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
		handler := process.Endpoints(c.Registry, process.Health{Healthy: replica.Healthy, Ready: replica.Ready, Checks: c.Checks})
		parts.Run(func(ctx context.Context) error { return process.Serve(ctx, listener, handler) })
	}
	parts.Run(replica.Run)
	return parts.Wait()
}

// Replica is one of the replicas of the controllers. It keeps its caches current
// for as long as it runs, and works while it is the leader.
type Replica struct {
	config      Config
	kinds       []kind
	controllers []kindController
	leases      coordinationv1client.LeasesGetter
	untyped     dynamic.Interface
	host        string
	leading     prometheus.Gauge
	watchdog    *leaderelection.HealthzAdaptor
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
	api, err := c.connect(newRequestMetrics(c.Registry))
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host's name: %w", err)
	}
	r := &Replica{
		config: c, kinds: c.enabledKinds(), host: host,
		leading: promauto.With(c.Registry).NewGauge(prometheus.GaugeOpts{Name: "tapp_leader",
			Help: "1 while this replica is the one that works."}),
		watchdog: leaderelection.NewLeaderHealthzAdaptor(watchdogMargin),
	}
	if r.leases, err = coordinationv1client.NewForConfig(api.leases); err != nil {
		return nil, fmt.Errorf("making a client of Leases: %w", err)
	}
	if r.untyped, err = dynamic.NewForConfig(api.requests); err != nil {
		return nil, fmt.Errorf("making a client of CustomResourceDefinitions: %w", err)
	}
	s := setup{config: &r.config, api: api, queue: loop.NewMetrics(c.Registry), host: host}
	s.held = promauto.With(c.Registry).NewGaugeVec(prometheus.GaugeOpts{Name: "tapp_schema_held",
		Help: "1 while nothing is done for a kind, because its served schema lost fields that objects use."}, []string{"kind"})
	for _, k := range r.kinds {
		controller, err := k.newController(s)
		if err != nil {
			return nil, fmt.Errorf("making the controller of the kind %s: %w", k.name, err)
		}
		if err := c.Registry.Register(controller); err != nil {
			return nil, fmt.Errorf("registering the metrics of the kind %s: %w", k.name, err)
		}
		r.controllers = append(r.controllers, controller)
	}
	return r, nil
}

// Healthy is nil unless the replica holds on to a lease that has expired.
func (r *Replica) Healthy(request *http.Request) error { return r.watchdog.Check(request) }

var errNotSynced = errors.New("the caches are not filled yet")

// Ready is nil once the caches are filled, also those of a standby.
func (r *Replica) Ready() error {
	var empty []string
	for i, c := range r.controllers {
		if !c.HasSynced() {
			empty = append(empty, r.kinds[i].name)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	hint := ""
	if !r.config.CreateCRD {
		hint = ". If this stays: are the CustomResourceDefinitions installed? --create-crd=false leaves that to others"
	}
	return fmt.Errorf("%w: those of %s%s", errNotSynced, strings.Join(empty, ", "), hint)
}

// Run looks after the kinds until ctx ends: then it finishes the writes under way,
// gives up the lease, and returns nil.
func (r *Replica) Run(ctx context.Context) error {
	klog.FromContext(ctx).Info("Starting the controllers", "version", r.config.Version)
	if r.config.CreateCRD {
		if err := ensureCRDs(ctx, r.untyped, r.kinds); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	// The caches are current for longer than it works.
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var caches sync.WaitGroup
	for _, c := range r.controllers {
		caches.Go(func() { c.Watch(watching) })
	}
	defer caches.Wait()
	defer stopWatching()

	if e := r.config.Election; e.Enabled {
		e.Namespace = r.config.ownNamespace()
		return e.campaign(ctx, candidate{
			leases: r.leases, identity: r.host + "_" + uuid.NewString(),
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
	for _, c := range r.controllers {
		working.Go(func() { c.Run(ctx, underWay) })
	}
	working.Wait()
}
