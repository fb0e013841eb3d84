package advdeployment

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Metrics of the controller.
type Metrics struct {
	actions      *prometheus.CounterVec
	statusWrites prometheus.Counter
	staleRepairs prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	f := promauto.With(registerer)
	return &Metrics{
		actions: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_advdeployment_actions_total",
			Help: "Actions on AdvDeployments and their children by operation, kind and result: done, stale (came too late, and is planned anew), refused or failed."},
			[]string{"op", "kind", "result"}),
		statusWrites: f.NewCounter(prometheus.CounterOpts{Name: "tapp_advdeployment_status_writes_total",
			Help: "Writes of AdvDeployment statuses."}),
		staleRepairs: f.NewCounter(prometheus.CounterOpts{Name: "tapp_advdeployment_stale_cache_repairs_total",
			Help: "Plans for AdvDeployments that were made on a live view because the caches still lacked our own writes. A steady rate means that a watch is stuck."}),
	}
}

// statusMetrics of each AdvDeployment are read from the cache when they are asked for.
// Only the leader tells them: a sum over all replicas is right.
type statusMetrics struct {
	desired, available, generation, observed, condition *prometheus.Desc
}

func newStatusMetrics() statusMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"namespace", "advdeployment"}, labels...), nil)
	}
	return statusMetrics{
		desired:    desc("tapp_advdeployment_replicas_desired", "Instances of an AdvDeployment that are to run."),
		available:  desc("tapp_advdeployment_replicas_available", "Instances of an AdvDeployment that are available."),
		generation: desc("tapp_advdeployment_generation", "Generation of the spec of an AdvDeployment."),
		observed:   desc("tapp_advdeployment_observed_generation", "Generation of the spec that the status of an AdvDeployment is about."),
		condition:  desc("tapp_advdeployment_condition", "1 if the condition of an AdvDeployment (Ready, Reconciling, Stalled) is True, else 0.", "condition"),
	}
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(ch chan<- *prometheus.Desc) {
	m := c.statusMetrics
	for _, d := range []*prometheus.Desc{m.desired, m.available, m.generation, m.observed, m.condition} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	if !c.working.Load() {
		return
	}
	for _, o := range c.deployments.GetStore().List() {
		c.collect(ch, o.(*v1beta1.AdvDeployment))
	}
}

func (c *Controller) collect(ch chan<- prometheus.Metric, d *v1beta1.AdvDeployment) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{d.Namespace, d.Name}, labels...)...)
	}
	m, s := c.statusMetrics, &d.Status
	gauge(m.desired, float64(s.AggrStatus.Desired))
	gauge(m.available, float64(s.AggrStatus.Available))
	gauge(m.generation, float64(d.Generation))
	gauge(m.observed, float64(s.ObservedGeneration))
	for i := range s.Conditions {
		value := 0.0
		if s.Conditions[i].Status == "True" {
			value = 1
		}
		gauge(m.condition, value, s.Conditions[i].Type)
	}
}
