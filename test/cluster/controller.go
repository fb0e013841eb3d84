package cluster

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"tkestack.io/tapp/controller"
)

// Controller is a run of the controller.
type Controller struct {
	rig      *Rig
	registry *prometheus.Registry
	cancel   context.CancelFunc
	ended    chan struct{}
	err      error
}

// Start runs a controller of these kinds for the namespace alone, without election,
// until the test ends. Its configuration can be changed before.
func (r *Rig) Start(kinds []string, change ...func(*controller.Config)) *Controller {
	r.Helper()
	out := &Controller{rig: r, registry: prometheus.NewRegistry(), ended: make(chan struct{})}
	c := controller.Defaults()
	c.REST, c.Namespace, c.CreateCRD, c.MetricsAddress, c.Version = rest.CopyConfig(r.Config), r.NS, false, "", r.NS
	c.Election.Enabled, c.Registry, c.Controllers = false, out.registry, kinds
	for _, f := range change {
		f(&c)
	}
	// Not the test's context, which ends before its cleanups.
	logger := ktesting.NewLogger(r.T, ktesting.NewConfig(ktesting.Verbosity(3), ktesting.BufferLogs(true)))
	var ctx context.Context
	ctx, out.cancel = context.WithCancel(klog.NewContext(context.Background(), logger))
	go func() {
		defer close(out.ended)
		out.err = controller.Run(ctx, c)
	}()
	r.Cleanup(out.Stop)
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
		c.rig.Error("the controller does not end")
		return
	}
	if c.err != nil {
		c.rig.Errorf("the controller ended with %v", c.err)
	}
}

// Metric sums a metric over those of its labels that are not given.
func (c *Controller) Metric(name string, labels map[string]string) float64 {
	families, err := c.registry.Gather()
	if err != nil {
		c.rig.Fatal(err)
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
