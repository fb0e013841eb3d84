package tapp

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Metrics of each TApp are read from its cached spec and status when they are
// asked for, so that there is nothing to keep in step, and those of a deleted
// TApp are gone at once. Only the leader tells them: a sum over all replicas is
// right.
//
// A TApp with any number of instances has at most one series for each state.
type statusMetrics struct {
	instances, desired, replicas, ready, updated, available *prometheus.Desc
	generation, observed, condition, paused                 *prometheus.Desc
}

func newStatusMetrics() statusMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"namespace", "tapp"}, labels...), nil)
	}
	return statusMetrics{
		instances:  desc("tapp_instances", "Instances of a TApp by state; states that none is in are left out.", "state"),
		desired:    desc("tapp_replicas_desired", "Instances that the spec of a TApp asks for, stopped ones included."),
		replicas:   desc("tapp_replicas", "Pods of a TApp that exist and have not finished."),
		ready:      desc("tapp_replicas_ready", "Pods of a TApp that are ready."),
		updated:    desc("tapp_replicas_updated", "Pods of a TApp that follow the current template of their instance."),
		available:  desc("tapp_replicas_available", "Instances of a TApp that are in service: ready for minReadySeconds, not ending and not being updated."),
		generation: desc("tapp_generation", "Generation of the spec of a TApp."),
		observed:   desc("tapp_observed_generation", "Generation of the spec that the status of a TApp is about."),
		condition:  desc("tapp_condition", "1 if the condition of a TApp (Ready, Progressing, Stalled) is True, else 0.", "condition"),
		paused:     desc("tapp_paused", "1 if the spec of a TApp holds back updates, else 0."),
	}
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(ch chan<- *prometheus.Desc) {
	m := c.statusMetrics
	for _, d := range []*prometheus.Desc{m.instances, m.desired, m.replicas, m.ready, m.updated, m.available, m.generation, m.observed, m.condition, m.paused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	if !c.working.Load() {
		return
	}
	for _, o := range c.tapps.GetStore().List() {
		c.collect(ch, o.(*tappv1.TApp))
	}
}

func (c *Controller) collect(ch chan<- prometheus.Metric, t *tappv1.TApp) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{t.Namespace, t.Name}, labels...)...)
	}
	m, s := c.statusMetrics, &t.Status
	states := map[tappv1.InstanceStatus]int{}
	for _, state := range s.Statuses {
		states[state]++
	}
	for state, n := range states {
		gauge(m.instances, float64(n), string(state))
	}
	desired := int32(1)
	if t.Spec.Replicas != nil {
		desired = *t.Spec.Replicas
	}
	gauge(m.desired, float64(desired))
	gauge(m.replicas, float64(s.Replicas))
	gauge(m.ready, float64(s.ReadyReplicas))
	gauge(m.updated, float64(s.UpdatedReplicas))
	gauge(m.available, float64(s.AvailableReplicas))
	gauge(m.generation, float64(t.Generation))
	gauge(m.observed, float64(s.ObservedGeneration))
	gauge(m.paused, number01(t.Spec.Paused))
	for _, condition := range []string{tappv1.ConditionReady, tappv1.ConditionProgressing, tappv1.ConditionStalled} {
		gauge(m.condition, number01(meta.IsStatusConditionTrue(s.Conditions, condition)), condition)
	}
}

func number01(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Lister reads the cached TApps.
func (c *Controller) Lister() client.Lister { return c.lister }

// Pods are the cached ones that a TApp owns, may adopt, or that have the names of
// its instances. They are shared with the cache.
func (c *Controller) Pods(t *tappv1.TApp) ([]*corev1.Pod, error) {
	v, err := c.cached(t)
	if err != nil {
		return nil, err
	}
	return v.pods, nil
}
