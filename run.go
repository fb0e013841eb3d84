package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/api"
	"tkestack.io/tapp/api/server"
	"tkestack.io/tapp/controller"
	appv1 "tkestack.io/tapp/crd/app/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/process"
	"tkestack.io/tapp/webhook"
)

// runCommand is `tapp run`: the webhooks on every replica and the controllers on
// the leader, in one process. The webhooks read the controllers' caches.
func runCommand(version string, page http.Handler) *cli.Command {
	c, a, served := controller.Defaults(), webhook.NewAdmission(version), server.Defaults()
	c.Version, served.Version, served.Page, served.ListenAddress = version, version, page, ""
	return process.Command(process.Spec{
		Name: "run", Usage: "serve the admission webhooks, and run the controllers while being the leader", Version: version,
		Flags: process.Union(c.Flags(), a.Flags(), []cli.Flag{
			&cli.StringFlag{Name: "api-listen-address", Usage: "`address` of the HTTP API and its page, as `tapp api` serves them; empty: they are not served. The certificate is --tlsCertFile, or one of this run", Destination: &served.ListenAddress},
		}),
		Run: func(ctx context.Context) error { return run(ctx, c, a, served) },
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

func run(ctx context.Context, c controller.Config, a *webhook.Admission, served server.Config) error {
	registry := prometheus.NewRegistry()
	process.NewMetrics(registry, c.Version)
	c.Registry, a.Registry = registry, registry
	c.Checks = &process.Checks{}
	// Flags of both.
	a.Kinds, a.Namespace = c.Controllers, c.Namespace
	a.DefaultTopologySpread = c.DefaultTopologySpread
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
	served.Registry = registry
	web, err := newAPI(ctx, c, a, served)
	if err != nil {
		return err
	}
	parts := process.NewParts(ctx)
	health := process.Health{
		Healthy: replica.Healthy,
		Ready:   func() error { return errors.Join(replica.Ready(), a.Ready(), web.ready()) },
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
	if web.Server != nil {
		defer web.Close()
		parts.Run(web.Run)
	}
	return parts.Wait()
}

// served is the API beside the rest; the zero value serves none.
type served struct{ *server.Server }

func (s served) ready() error {
	if s.Server == nil {
		return nil
	}
	return s.Ready()
}

// newAPI takes what it shares with the others from their flags.
func newAPI(ctx context.Context, c controller.Config, a *webhook.Admission, config server.Config) (served, error) {
	if config.ListenAddress == "" {
		return served{}, nil
	}
	config.Kubeconfig, config.Master, config.Namespace, config.CertFile, config.KeyFile = c.Kubeconfig, c.Master, c.Namespace, a.TLS.CertFile, a.TLS.KeyFile
	config.Clusters = api.MembersOptions{Namespace: c.Fleet.ClusterNamespace, FleetID: c.Fleet.ID, SelfCluster: c.Fleet.SelfCluster, AllowLocal: c.Fleet.AllowLocal}
	server, err := server.NewServer(ctx, config)
	return served{server}, err
}
