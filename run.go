package main

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/controller"
	appv1 "tkestack.io/tapp/crd/app/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/process"
	"tkestack.io/tapp/webhook"
)

// runCommand is `tapp run`: the webhooks on every replica and the controllers on
// the leader, in one process. The webhooks read the controllers' caches.
func runCommand(version string) *cli.Command {
	c, a := controller.Defaults(), webhook.NewAdmission(version)
	c.Version = version
	return process.Command(process.Spec{
		Name: "run", Usage: "serve the admission webhooks, and run the controllers while being the leader", Version: version,
		Flags: process.Union(c.Flags(), a.Flags()),
		Run:   func(ctx context.Context) error { return run(ctx, c, a) },
	})
}

// tappReader is what the controller of TApps offers to their webhooks.
type tappReader interface {
	TApps(ctx context.Context, namespace string) ([]*tappv1.TApp, error)
	PodsOf(ctx context.Context, owner *tappv1.TApp) ([]*corev1.Pod, error)
}

// appReader is what the controller of Apps offers to their webhooks.
type appReader interface {
	AppsNaming(ctx context.Context, kind, namespace, name string) ([]*appv1.App, error)
}

func run(ctx context.Context, c controller.Config, a *webhook.Admission) error {
	registry := prometheus.NewRegistry()
	process.NewMetrics(registry, c.Version)
	c.Registry, a.Registry = registry, registry
	c.Checks = &process.Checks{}
	// Flags of both.
	a.Kinds, a.Namespace = c.Controllers, c.Namespace
	a.Kubeconfig, a.Master, a.KubeAPIQPS, a.KubeAPIBurst = c.Kubeconfig, c.Master, c.KubeAPIQPS, c.KubeAPIBurst

	replica, err := controller.New(c)
	if err != nil {
		return err
	}
	// What is not looked after has no cache, and is read live.
	if tapps, ok := controller.Find[tappReader](replica); ok {
		a.Reads.TApps, a.Reads.Pods = tapps.TApps, tapps.PodsOf
	}
	if apps, ok := controller.Find[appReader](replica); ok {
		a.Reads.AppsNaming = apps.AppsNaming
	}
	if err := a.Prepare(); err != nil {
		return err
	}
	parts := process.NewParts(ctx)
	health := process.Health{
		Healthy: replica.Healthy,
		Ready:   func() error { return errors.Join(replica.Ready(), a.Ready()) },
		Checks:  c.Checks,
	}
	metrics, err := a.ServeMetrics(parts, registry)
	if err != nil {
		return err
	}
	if err := parts.Serve(c.MetricsAddress, process.Endpoints(metrics, health)); err != nil {
		return err
	}
	parts.Run(replica.Run)
	parts.Run(a.Run)
	return parts.Wait()
}
