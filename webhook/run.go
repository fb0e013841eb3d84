package webhook

import (
	"context"
	"fmt"
	"net"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/process"
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
	registerer := c.Registry
	if registerer == nil {
		registerer = prometheus.NewRegistry()
	}
	m := newMetrics(registerer)
	base, err := c.connect()
	if err != nil {
		return nil, err
	}
	v, err := c.newValidator(base, m)
	if err != nil {
		return nil, err
	}
	apps, err := c.newAppValidator(base)
	if err != nil {
		return nil, err
	}
	s := &server{certificates: c.Certificates, delay: c.ShutdownDelay, apps: apps.validate}
	s.handler = s.routes(m, mutate, v.validate)
	return s, nil
}

// connect says how the API server is asked.
func (c *Config) connect() (*rest.Config, error) {
	base, err := process.FindAPIServer(c.REST, c.Kubeconfig, c.Master)
	if err != nil {
		return nil, err
	}
	base.UserAgent = fmt.Sprintf("tapp/%s (%s/%s) webhook", c.Version, runtime.GOOS, runtime.GOARCH)
	base.AcceptContentTypes = kruntime.ContentTypeProtobuf + "," + kruntime.ContentTypeJSON
	base.ContentType = kruntime.ContentTypeProtobuf
	base.Timeout = longestTimeout
	base.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(c.KubeAPIQPS), c.KubeAPIBurst)
	base.WarningHandlerWithContext = collectWarnings{}
	return base, nil
}

func (c *Config) newAppValidator(base *rest.Config) (*appValidator, error) {
	if c.Reads.AppsNaming != nil {
		return &appValidator{naming: c.Reads.AppsNaming}, nil
	}
	apps, err := client.NewApps(base)
	if err != nil {
		return nil, fmt.Errorf("making a client of Apps: %w", err)
	}
	return &appValidator{naming: liveNaming(apps)}, nil
}

func (c *Config) newValidator(base *rest.Config, m *metrics) (*validator, error) {
	core, err := corev1client.NewForConfig(base)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	tapps, err := client.New(base)
	if err != nil {
		return nil, fmt.Errorf("making a client of TApps: %w", err)
	}
	reads := c.Reads
	if reads.Pods == nil {
		reads.Pods = livePods(core)
	}
	if reads.TApps == nil {
		reads.TApps = liveTApps(tapps)
	}
	if reads.Resize == nil {
		reads.Resize = liveResize(core.RESTClient())
	}
	return &validator{pods: podTrial{pods: core, atATime: c.DryRuns, metrics: m}, reads: reads}, nil
}
