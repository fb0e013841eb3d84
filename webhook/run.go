package webhook

import (
	"context"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"tkestack.io/tapp/process"
	"tkestack.io/tapp/webhook/review"
)

// Run answers reviews until ctx ends, and returns nil then.
func Run(ctx context.Context, c Config) error {
	s, err := newServer(c)
	if err != nil {
		return err
	}
	listener := c.Listener
	if listener == nil {
		if listener, err = net.Listen("tcp", c.ListenAddress); err != nil {
			return fmt.Errorf("listening for reviews: %w", err)
		}
	}
	return s.serve(ctx, listener)
}

// newServer makes a server and registers its metrics. Nothing is asked of the API
// server before a review.
func newServer(c Config) (*server, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	api, err := c.connect()
	if err != nil {
		return nil, err
	}
	s := &server{certificates: c.Certificates, clients: c.Clients, delay: c.ShutdownDelay, load: &review.Load{Reviews: c.MaxReviews, Bytes: int64(c.MaxReviewBytes)}}
	b := Backend{Config: c, API: api, Reviews: review.NewMetrics(c.Registry)}
	for _, k := range c.served() {
		webhooks, err := k.Webhooks(b)
		if err != nil {
			return nil, err
		}
		for _, w := range webhooks {
			w.kind = k.Name
			s.webhooks = append(s.webhooks, w)
		}
	}
	s.handler = s.routes()
	return s, nil
}

// connect says how the API server is asked.
func (c *Config) connect() (*rest.Config, error) {
	api, err := process.FindAPIServer(c.REST, c.Kubeconfig, c.Master)
	if err != nil {
		return nil, err
	}
	process.Introduce(api, c.Version, "webhook")
	api.Timeout = review.MaxTimeout
	api.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(c.KubeAPIQPS), c.KubeAPIBurst)
	api.WarningHandlerWithContext = rest.NoWarnings{}
	return api, nil
}
