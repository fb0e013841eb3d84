package fleet

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Metrics of the clusters.
type Metrics struct {
	inConfigMaps prometheus.Gauge
	changes      *prometheus.CounterVec // by state
}

// NewMetrics registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	factory := promauto.With(registerer)
	m := &Metrics{
		inConfigMaps: factory.NewGauge(prometheus.GaugeOpts{Name: "tapp_fleet_credentials_in_configmaps",
			Help: "Registered clusters whose credentials are in a ConfigMap."}),
		changes: factory.NewCounterVec(prometheus.CounterOpts{Name: "tapp_fleet_cluster_changes_total",
			Help: "Changes of the states of clusters, by the new state."}, []string{"state"}),
	}
	for _, state := range states() {
		m.changes.WithLabelValues(string(state))
	}
	return m
}

func states() []v1beta1.ClusterState {
	return []v1beta1.ClusterState{v1beta1.ClusterReady, v1beta1.ClusterSuspect, v1beta1.ClusterOffline, v1beta1.ClusterMaintaining,
		v1beta1.ClusterUnregistered, v1beta1.ClusterMistaken, v1beta1.ClusterUnfit}
}
