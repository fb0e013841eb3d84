package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"tkestack.io/tapp/controller"
)

// ApplyCRDs has a controller apply the CustomResourceDefinitions of these kinds, and
// ends it when they are served.
func ApplyCRDs(agent string, kinds ...string) error {
	cluster, err := Connect(agent)
	if err != nil {
		return err
	}
	c := controller.Defaults()
	c.REST, c.MetricsAddress, c.Election.Enabled, c.Namespace, c.Controllers = cluster.Config, "", false, "none", kinds
	replica, err := controller.New(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		select {
		case err := <-ended:
			ended <- nil
			return true, err
		default:
			return replica.Ready() == nil, nil
		}
	})
	cancel()
	return errors.Join(err, <-ended)
}

// Controller is a run of the controller.
type Controller struct {
	space    *Space
	registry *prometheus.Registry
	cancel   context.CancelFunc
	ended    chan struct{}
	err      error
}

// Start runs a controller of these kinds for the namespace alone, without election,
// until the test ends. Its configuration can be changed before.
func (s *Space) Start(kinds []string, change ...func(*controller.Config)) *Controller {
	s.Helper()
	out := &Controller{space: s, registry: prometheus.NewRegistry(), ended: make(chan struct{})}
	c := controller.Defaults()
	c.REST, c.Namespace, c.CreateCRD, c.MetricsAddress, c.Version = rest.CopyConfig(s.Config), s.NS, false, "", s.NS
	c.Election.Enabled, c.Registry, c.Controllers = false, out.registry, kinds
	for _, f := range change {
		f(&c)
	}
	// Not the test's context, which ends before its cleanups.
	logger := ktesting.NewLogger(s.T, ktesting.NewConfig(ktesting.Verbosity(3), ktesting.BufferLogs(true)))
	var ctx context.Context
	ctx, out.cancel = context.WithCancel(klog.NewContext(context.Background(), logger))
	go func() {
		defer close(out.ended)
		out.err = controller.Run(ctx, c)
	}()
	s.Cleanup(out.Stop)
	return out
}

// Cancel has the controller end; it need not have done so.
func (c *Controller) Cancel() { c.cancel() }

// Ended is closed when the controller has ended.
func (c *Controller) Ended() <-chan struct{} { return c.ended }

// Err is how it has ended.
func (c *Controller) Err() error { return c.err }

// Stop ends the controller in order.
func (c *Controller) Stop() {
	c.cancel()
	select {
	case <-c.ended:
	case <-time.After(Patience):
		c.space.Error("the controller does not end")
		return
	}
	if c.err != nil {
		c.space.Errorf("the controller ended with %v", c.err)
	}
}

// Metric sums a metric over those of its labels that are not given.
func (c *Controller) Metric(name string, labels map[string]string) float64 {
	families, err := c.registry.Gather()
	if err != nil {
		c.space.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if matches(m, labels) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func matches(m *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, l := range m.GetLabel() {
		if want, ok := labels[l.GetName()]; ok && want == l.GetValue() {
			found++
		}
	}
	return found == len(labels)
}
