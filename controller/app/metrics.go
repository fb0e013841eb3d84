package app

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	appv1 "tkestack.io/tapp/crd/app/v1"
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
		actions: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_app_actions_total",
			Help: "Actions on the children of Apps by operation, kind and result: done, stale (came too late, and is planned anew), refused or failed."},
			[]string{"op", "kind", "result"}),
		statusWrites: f.NewCounter(prometheus.CounterOpts{Name: "tapp_app_status_writes_total",
			Help: "Writes of App statuses."}),
		staleRepairs: f.NewCounter(prometheus.CounterOpts{Name: "tapp_app_stale_cache_repairs_total",
			Help: "Plans for Apps that were made on a live view because the caches still lacked our own writes. A steady rate means that a watch is stuck."}),
	}
}

// statusMetrics of each App are read from the cache when they are asked for. Only
// the leader tells them: a sum over all replicas is right.
type statusMetrics struct {
	desired, ready, generation, observed, condition *prometheus.Desc
}

func newStatusMetrics() statusMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"namespace", "app"}, labels...), nil)
	}
	return statusMetrics{
		desired:    desc("tapp_app_replicas_desired", "Pods that the spec of an App asks for."),
		ready:      desc("tapp_app_replicas_ready", "Pods of an App that are ready."),
		generation: desc("tapp_app_generation", "Generation of the spec of an App."),
		observed:   desc("tapp_app_observed_generation", "Generation of the spec that the status of an App is about."),
		condition:  desc("tapp_app_condition", "1 if the condition of an App (Ready, Reconciling, Stalled) is True, else 0.", "condition"),
	}
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(ch chan<- *prometheus.Desc) {
	m := c.statusMetrics
	for _, d := range []*prometheus.Desc{m.desired, m.ready, m.generation, m.observed, m.condition} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	if !c.working.Load() {
		return
	}
	for _, o := range c.apps.GetStore().List() {
		c.collect(ch, o.(*appv1.App).DeepCopy())
	}
}

func (c *Controller) collect(ch chan<- prometheus.Metric, a *appv1.App) {
	appv1.Default(a)
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{a.Namespace, a.Name}, labels...)...)
	}
	m := c.statusMetrics
	if a.Spec.DeploymentTemplate.Name != "" {
		gauge(m.desired, float64(*a.Spec.DeploymentTemplate.Replicas))
		ready := int32(0)
		if s := a.Status.DeploymentStatus; s != nil {
			ready = s.ReadyReplicas
		}
		gauge(m.ready, float64(ready))
	}
	gauge(m.generation, float64(a.Generation))
	gauge(m.observed, float64(a.Status.ObservedGeneration))
	for i := range a.Status.Conditions {
		value := 0.0
		if a.Status.Conditions[i].Status == "True" {
			value = 1
		}
		gauge(m.condition, value, a.Status.Conditions[i].Type)
	}
}
