package main

import (
	"context"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"

	"tkestack.io/tapp/controller"
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

func run(ctx context.Context, c controller.Config, a *webhook.Admission) error {
	registry := prometheus.NewRegistry()
	process.NewMetrics(registry, c.Version)
	c.Registry, a.Registry = registry, registry
	// Flags of both.
	a.Kinds, a.Namespace = c.Controllers, c.Namespace
	a.Kubeconfig, a.Master, a.KubeAPIQPS, a.KubeAPIBurst = c.Kubeconfig, c.Master, c.KubeAPIQPS, c.KubeAPIBurst

	replica, err := controller.New(c)
	if err != nil {
		return err
	}
	// What is not looked after has no cache, and is read live.
	if slices.Contains(c.Controllers, controller.KindTApp) {
		a.Reads.Pods, a.Reads.TApps = replica.Pods, replica.TApps
	}
	if slices.Contains(c.Controllers, controller.KindApp) {
		a.Reads.AppsNaming = replica.AppsNaming
	}
	if err := a.Prepare(); err != nil {
		return err
	}
	parts := process.NewParts(ctx)
	health := process.Health{
		Healthy: replica.Healthy,
		Ready:   func() error { return errors.Join(replica.Ready(), a.Ready()) },
	}
	if err := parts.Serve(c.MetricsAddress, process.Endpoints(registry, health)); err != nil {
		return err
	}
	parts.Run(replica.Run)
	parts.Run(a.Run)
	return parts.Wait()
}
