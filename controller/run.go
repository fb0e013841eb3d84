package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/tapp"
)

// watchdogMargin is how long a leader may hold on to an expired lease before
// /healthz has the kubelet restart it.
const watchdogMargin = 20 * time.Second

// Run looks after TApps until ctx ends: then it finishes the writes under way,
// gives up the lease, and returns nil.
func Run(ctx context.Context, c Config) error {
	if err := c.validate(); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "version", c.Version)

	registry := c.Registry
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	clients, err := c.newClients(newRequestMetrics(registry))
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the host's name: %w", err)
	}
	tapps, err := c.newTApps(clients, registry, host)
	if err != nil {
		return err
	}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(watchdogMargin)

	// The server starts first: a pod whose CRDs are still being applied is alive.
	listener := c.Listener
	if listener == nil && c.MetricsAddress != "" {
		if listener, err = net.Listen("tcp", c.MetricsAddress); err != nil {
			return fmt.Errorf("listening for metrics and health: %w", err)
		}
	}
	parts := newParts(ctx)
	if listener != nil {
		handler := endpoints(registry, watchdog.Check, tapps.HasSynced)
		parts.run(func(ctx context.Context) error { return serve(ctx, listener, handler) })
	}
	parts.run(func(ctx context.Context) error {
		if c.CreateCRD {
			if err := ensureCRDs(ctx, clients.dynamic); err != nil {
				return errorUnlessEnded(ctx, err)
			}
		}
		return c.workAndWatch(ctx, clients, tapps, watchdog, noteLeading(registry, tapps.Run), host)
	})
	return parts.wait()
}

// workAndWatch keeps the caches current for longer than it works.
func (c *Config) workAndWatch(ctx context.Context, clients *clients, tapps *tapp.Controller, watchdog *leaderelection.HealthzAdaptor, do work, host string) error {
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var caches sync.WaitGroup
	caches.Go(func() { tapps.Watch(watching) })
	defer caches.Wait()
	defer stopWatching()

	if !c.Election.Enabled {
		t := newTerm(ctx, c.Grace, do)
		stop := context.AfterFunc(ctx, t.end)
		defer stop()
		t.begin()
		return nil
	}
	return c.Election.campaign(ctx, clients.leases, host+"_"+uuid.NewString(), c.Grace, watchdog, do)
}

// noteLeading has a metric say which replica works.
func noteLeading(registerer prometheus.Registerer, do work) work {
	leading := promauto.With(registerer).NewGauge(prometheus.GaugeOpts{Name: "tapp_leader", Help: "1 while this replica is the one that works."})
	return func(ctx, underWay context.Context) {
		leading.Set(1)
		defer leading.Set(0)
		do(ctx, underWay)
	}
}

func (c *Config) newTApps(clients *clients, registry *prometheus.Registry, host string) (*tapp.Controller, error) {
	o := tapp.Options{
		TApps: clients.tapps, Core: clients.core, Events: clients.events,
		Namespace: c.Namespace, Workers: c.Workers,
		Policy:  tapp.Policy{DeletePodAfterAppFinish: c.DeletePodAfterAppFinish, NodeLostAfter: c.NodeLostAfter},
		Metrics: tapp.NewMetrics(registry), Queue: loop.NewMetrics(registry), Host: host,
	}
	o.Watching.TApps, o.Watching.Core = clients.watchingTApps, clients.watchingCore
	tapps, err := tapp.New(o)
	if err != nil {
		return nil, fmt.Errorf("making the TApp controller: %w", err)
	}
	return tapps, nil
}

// parts of a program: when one of them ends, so do the others.
type parts struct {
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

func newParts(ctx context.Context) *parts {
	p := &parts{}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

func (p *parts) run(part func(context.Context) error) {
	p.group.Go(func() {
		defer p.cancel()
		if err := part(p.ctx); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, err)
		}
	})
}

func (p *parts) wait() error {
	p.group.Wait()
	return errors.Join(p.errs...)
}

// errorUnlessEnded leaves out the errors that ending causes.
func errorUnlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func leaseMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
