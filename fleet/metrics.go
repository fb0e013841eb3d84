package fleet

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Metrics that a Fleet counts. Those that it reads from its members are collected from
// the Fleet itself.
type Metrics struct {
	changes *prometheus.CounterVec // by state
}

// NewMetrics registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{changes: promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{Name: "tapp_fleet_cluster_changes_total",
		Help: "Changes of the states of clusters, by the new state."}, []string{"state"})}
	for _, state := range states() {
		m.changes.WithLabelValues(string(state))
	}
	return m
}

func states() []v1beta1.ClusterState {
	return []v1beta1.ClusterState{v1beta1.ClusterReady, v1beta1.ClusterSuspect, v1beta1.ClusterOffline, v1beta1.ClusterMaintaining,
		v1beta1.ClusterUnregistered, v1beta1.ClusterMistaken, v1beta1.ClusterUnfit}
}

// gauges that are read from the members. Those of a cluster go with it.
type gauges struct {
	clusters, inConfigMaps, state, fresh, asOf, parts *prometheus.Desc
}

func newGauges() gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("tapp_fleet_"+name, help, labels, nil)
	}
	return gauges{
		clusters:     desc("clusters", "Clusters that are registered, or were and have parts, by state.", "state"),
		inConfigMaps: desc("credentials_in_configmaps", "Registered clusters whose credentials are in a ConfigMap."),
		state:        desc("cluster_state", "Always 1; the label says in which state the cluster is.", "cluster", "state"),
		fresh:        desc("cluster_fresh", "1 if the cluster answers and what is known of it is current.", "cluster"),
		asOf:         desc("cluster_as_of_seconds", "Until when what is known of the cluster is known to be true, in seconds since 1970.", "cluster"),
		parts:        desc("cluster_parts", "AdvDeployments of this fleet that are known in the cluster.", "cluster"),
	}
}

// Describe the gauges of any Fleet.
func Describe(out chan<- *prometheus.Desc) {
	g := newGauges()
	for _, desc := range []*prometheus.Desc{g.clusters, g.inConfigMaps, g.state, g.fresh, g.asOf, g.parts} {
		out <- desc
	}
}

// Describe the gauges.
func (*Fleet) Describe(out chan<- *prometheus.Desc) { Describe(out) }

// Collect the gauges.
func (f *Fleet) Collect(out chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	count, inConfigMaps := map[v1beta1.ClusterState]int{}, 0
	for _, m := range f.all() {
		now, parts, inConfigMap := m.figures()
		count[now.State]++
		if inConfigMap {
			inConfigMaps++
		}
		fresh := 0.0
		if now.Fresh {
			fresh = 1
		}
		gauge(f.gauges.state, 1, m.name, string(now.State))
		gauge(f.gauges.fresh, fresh, m.name)
		gauge(f.gauges.parts, float64(parts), m.name)
		if !now.AsOf.IsZero() {
			gauge(f.gauges.asOf, float64(now.AsOf.UnixMilli())/1000, m.name)
		}
	}
	for _, state := range states() {
		gauge(f.gauges.clusters, float64(count[state]), string(state))
	}
	gauge(f.gauges.inConfigMaps, float64(inConfigMaps))
}

func (m *member) figures() (now Member, parts int, inConfigMap bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.known != nil {
		parts = m.known.count()
	}
	return m.snapshot(), parts, m.reg != nil && m.reg.from.Kind == "ConfigMap"
}
