// Command reference writes the pages of docs/reference from the product itself, so that
// they are never out of date: metrics.md from the metrics that the program registers,
// api.md from its CustomResourceDefinitions. `make generate` runs it, and its tests fail
// when a page has changed.
//
// openapi.json and docs/api.md are made of the routes of the HTTP API, and chart/README.md of
// the chart's values.
//
//	reference metrics|api|openapi|http|values
//
// It is no part of the module tools, because it imports the product, whose dependencies
// would have other versions there and be compiled a second time.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api"
	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/process"
	"tkestack.io/tapp/webhook"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	out := bufio.NewWriter(os.Stdout)
	switch {
	case slices.Equal(args, []string{"metrics"}):
		families, err := registered()
		if err != nil {
			return err
		}
		write(out, families)
	case slices.Equal(args, []string{"api"}):
		if err := apiPage(out); err != nil {
			return err
		}
	case slices.Equal(args, []string{"openapi"}):
		if err := openAPI(out); err != nil {
			return err
		}
	case slices.Equal(args, []string{"http"}):
		if err := httpPage(out); err != nil {
			return err
		}
	case slices.Equal(args, []string{"values"}):
		if err := valuesPage(out); err != nil {
			return err
		}
	default:
		return errors.New("name one page: metrics, api, openapi, http or values")
	}
	return out.Flush()
}

// registered are the metrics of `tapp run`, which has all parts. None of them is
// started.
func registered() ([]family, error) {
	r := &recorder{Registry: prometheus.NewRegistry()}
	process.NewMetrics(r, "")
	c := controller.Defaults()
	c.Registry, c.REST, c.Controllers = r, &rest.Config{Host: "http://127.0.0.1"}, controller.Kinds()
	if _, err := controller.New(c); err != nil {
		return nil, fmt.Errorf("the controllers: %w", err)
	}
	a := webhook.NewAdmission("")
	a.Registry, a.REST, a.ListenAddress = r, c.REST, "127.0.0.1:0"
	a.TLS.SelfManaged, a.TLS.SecretNamespace, a.TLS.DNSNames = true, "none", []string{"none"}
	if err := a.Prepare(); err != nil {
		return nil, fmt.Errorf("the webhooks: %w", err)
	}
	h, err := api.New(context.Background(), api.Options{Config: c.REST, Authenticator: access.Loopback{}, Authorizer: access.Loopback{}, Registry: r})
	if err != nil {
		return nil, fmt.Errorf("the HTTP API: %w", err)
	}
	h.Close()
	return r.families, errors.Join(r.err, a.Listener.Close())
}
