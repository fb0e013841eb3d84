// Command reference prints docs/reference/metrics.md from the metrics that the
// program registers, so that the page cannot lag behind: `make generate`.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/process"
	"tkestack.io/tapp/webhook"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run() error {
	families, err := registered()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	write(out, families)
	return out.Flush()
}

// registered are the metrics of `tapp run`, which has all parts. None of them is
// started.
func registered() ([]family, error) {
	r := &recorder{Registry: prometheus.NewRegistry()}
	process.NewMetrics(r, "")
	c := controller.Defaults()
	c.Registry, c.REST = r, &rest.Config{Host: "http://127.0.0.1"}
	if _, err := controller.New(c); err != nil {
		return nil, fmt.Errorf("the controllers: %w", err)
	}
	a := webhook.NewAdmission("")
	a.Registry, a.REST, a.ListenAddress = r, c.REST, "127.0.0.1:0"
	a.TLS.SelfManaged, a.TLS.SecretNamespace, a.TLS.DNSNames = true, "none", []string{"none"}
	if err := a.Prepare(); err != nil {
		return nil, fmt.Errorf("the webhooks: %w", err)
	}
	return r.families, errors.Join(r.err, a.Listener.Close())
}
