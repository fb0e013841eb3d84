package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"tkestack.io/tapp/controller/app"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/tapp"
	appv1 "tkestack.io/tapp/crd/app/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Names of the kinds that there are controllers for.
const (
	KindTApp = "tapp"
	KindApp  = "app"
)

// Kinds that there are controllers for.
func Kinds() []string { return []string{KindTApp, KindApp} }

// kind is a controller as a replica runs it.
type kind interface {
	// Collector of the kind's metrics.
	prometheus.Collector
	// Watch fills the caches and keeps them current until ctx ends.
	Watch(ctx context.Context)
	// HasSynced says whether the caches have been filled.
	HasSynced() bool
	// Run works until ctx ends; what is under way then has the context work.
	Run(ctx, work context.Context)
}

var (
	_ kind = (*tapp.Controller)(nil)
	_ kind = (*app.Controller)(nil)
)

func (c *Config) has(kind string) bool { return slices.Contains(c.Controllers, kind) }

// crdKinds are the kinds whose CustomResourceDefinitions are applied.
func (c *Config) crdKinds() []string {
	var out []string
	if c.has(KindTApp) {
		out = append(out, tappv1.Kind)
	}
	if c.has(KindApp) {
		out = append(out, appv1.Kind)
	}
	return out
}

// batch is more than is carried out before the next plan anyway, and less than makes
// plans of 10,000 instances large.
const batch = 2000

func (c *Config) newTApps(clients *clients, queue *loop.Metrics, host string) (*tapp.Controller, error) {
	o := tapp.Options{
		TApps: clients.tapps, Core: clients.core, Apps: clients.apps, Events: clients.events,
		Namespace: c.Namespace, Workers: c.Workers,
		Policy:  tapp.Policy{DeletePodAfterAppFinish: c.DeletePodAfterAppFinish, NodeLostAfter: c.NodeLostAfter, Batch: batch},
		Metrics: tapp.NewMetrics(c.Registry), Queue: queue, Host: host,
	}
	o.Watching.TApps, o.Watching.Core, o.Watching.Apps = clients.watchingTApps, clients.watchingCore, clients.watchingApps
	tapps, err := tapp.New(o)
	if err != nil {
		return nil, fmt.Errorf("making the TApp controller: %w", err)
	}
	return tapps, nil
}

func (c *Config) newApps(clients *clients, queue *loop.Metrics, host string) (*app.Controller, error) {
	apps, err := app.New(app.Options{
		Clients:   app.Clients{Apps: clients.ownApps, Deployments: clients.apps, Services: clients.core},
		Watching:  app.Clients{Apps: clients.watchingOwnApps, Deployments: clients.watchingApps, Services: clients.watchingCore},
		Events:    clients.events,
		Namespace: c.Namespace, Workers: c.Workers,
		Metrics: app.NewMetrics(c.Registry), Queue: queue, Host: host,
	})
	if err != nil {
		return nil, fmt.Errorf("making the App controller: %w", err)
	}
	return apps, nil
}
