package appset

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
		actions: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_appset_actions_total",
			Help: "Actions on the parts of AppSets in their clusters by operation and result: done, stale (came too late, and is planned anew), refused or failed."},
			[]string{"op", "result"}),
		statusWrites: f.NewCounter(prometheus.CounterOpts{Name: "tapp_appset_status_writes_total",
			Help: "Writes of AppSet statuses."}),
		staleRepairs: f.NewCounter(prometheus.CounterOpts{Name: "tapp_appset_stale_cache_repairs_total",
			Help: "Plans for AppSets that were made on a live view because the caches still lacked our own writes. A steady rate means that a watch is stuck."}),
	}
}

// statusMetrics of each AppSet are read from the cache when they are asked for. Only the
// leader tells them: a sum over all replicas is right.
type statusMetrics struct {
	desired, available, unknown, generation, observed, condition, orphans *prometheus.Desc
	rolloutMetrics
}

func newStatusMetrics() statusMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"namespace", "appset"}, labels...), nil)
	}
	return statusMetrics{
		desired:    desc("tapp_appset_instances_desired", "Instances that an AppSet is to run in all clusters."),
		available:  desc("tapp_appset_instances_available", "Available instances of an AppSet in clusters that are heard."),
		unknown:    desc("tapp_appset_instances_unknown", "Instances of an AppSet in clusters that are silent."),
		generation: desc("tapp_appset_generation", "Generation of the spec of an AppSet."),
		observed:   desc("tapp_appset_observed_generation", "Generation of the spec that the status of an AppSet is about."),
		condition:  desc("tapp_appset_condition", "1 if the condition of an AppSet (Ready, Reconciling, Stalled, ClustersReachable) is True, else 0.", "condition"),
		orphans:    desc("tapp_fleet_orphans", "Parts in clusters whose AppSet there is not on this hub. They are told of, and never deleted."),

		rolloutMetrics: newRolloutMetrics(desc),
	}
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(ch chan<- *prometheus.Desc) {
	m := c.statusMetrics
	for _, d := range []*prometheus.Desc{m.desired, m.available, m.unknown, m.generation, m.observed, m.condition, m.orphans} {
		ch <- d
	}
	m.describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	if !c.working.Load() {
		return
	}
	for _, stored := range c.appSets.GetStore().List() {
		if a, ok := stored.(*v1beta1.AppSet); ok {
			c.collect(ch, a)
		}
	}
	for _, key := range c.parts.all() {
		if _, exists, _ := c.appSets.GetStore().GetByKey(key.String()); exists {
			continue
		}
		if parts := c.Fleet.Parts(key.Namespace, key.Name); len(parts) > 0 {
			ch <- prometheus.MustNewConstMetric(c.statusMetrics.orphans, prometheus.GaugeValue, float64(len(parts)), key.Namespace, key.Name)
		}
	}
}

func (c *Controller) collect(ch chan<- prometheus.Metric, a *v1beta1.AppSet) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{a.Namespace, a.Name}, labels...)...)
	}
	m, sums := c.statusMetrics, &a.Status.AggrStatus
	gauge(m.desired, float64(sums.Desired))
	gauge(m.available, float64(sums.Available))
	gauge(m.unknown, float64(sums.Unknown))
	gauge(m.generation, float64(a.Generation))
	gauge(m.observed, float64(a.Status.ObservedGeneration))
	for i := range a.Status.Conditions {
		value := 0.0
		if a.Status.Conditions[i].Status == "True" {
			value = 1
		}
		gauge(m.condition, value, a.Status.Conditions[i].Type)
	}
	m.collect(a, gauge)
}
