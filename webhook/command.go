package webhook

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"

	"tkestack.io/tapp/process"
)

// Command is `tapp webhook`.
func Command(version string) *cli.Command {
	a := NewAdmission(version)
	var metricsAddress string
	return process.Command(process.Spec{
		Name: "webhook", Usage: "serve the admission webhooks", Version: version,
		Flags: process.Union(a.Flags(), []cli.Flag{
			&cli.StringFlag{Name: "metrics-address", Usage: "`address` of /metrics, /healthz and /readyz; empty serves none", Destination: &metricsAddress, Value: ":8080"},
		}),
		Run: func(ctx context.Context) error {
			registry := prometheus.NewRegistry()
			process.NewMetrics(registry, version)
			a.Registry = registry
			if err := a.Prepare(); err != nil {
				return err
			}
			parts := process.NewParts(ctx)
			metrics, err := a.ServeMetrics(parts, registry)
			if err != nil {
				return err
			}
			if err := parts.Serve(metricsAddress, process.Endpoints(metrics, process.Health{Ready: a.Ready})); err != nil {
				return err
			}
			parts.Run(a.Run)
			return parts.Wait()
		},
	})
}
