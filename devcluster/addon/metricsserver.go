package addon

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"text/template"

	"tkestack.io/tapp/devcluster/images"
	"tkestack.io/tapp/devcluster/node"
)

//go:embed metrics-server.yaml
var metricsServer string

// EnsureMetricsServer makes the cluster have metrics-server on its real nodes, and waits until it has measured them.
func (a Addons) EnsureMetricsServer(ctx context.Context) error {
	manifest, err := template.New("metrics-server.yaml").Parse(metricsServer)
	if err != nil {
		return fmt.Errorf("manifest of metrics-server: %w", err)
	}
	var text bytes.Buffer
	if err := manifest.Execute(&text, map[string]any{"Image": images.MetricsServer, "Label": node.Label}); err != nil {
		return fmt.Errorf("manifest of metrics-server: %w", err)
	}
	if err := a.apply(ctx, "kube-system", text.Bytes()); err != nil {
		return fmt.Errorf("apply metrics-server: %w", err)
	}
	return a.waitDeployment(ctx, "metrics-server", "kube-system", "metrics-server")
}
