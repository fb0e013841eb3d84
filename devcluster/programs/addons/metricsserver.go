//go:build programs

package main

import (
	"context"

	metricsserver "sigs.k8s.io/metrics-server/cmd/metrics-server/app"
)

func runMetricsServer(ctx context.Context) error {
	return metricsserver.NewMetricsServerCommand(ctx.Done()).ExecuteContext(ctx)
}
