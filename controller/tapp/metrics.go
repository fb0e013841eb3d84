package tapp

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics of the controller.
type Metrics struct {
	actions      *prometheus.CounterVec
	planDuration prometheus.Histogram
	statusWrites prometheus.Counter
	staleRepairs prometheus.Counter
	gatesLeft    prometheus.Counter
	events       *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	f := promauto.With(registerer)
	return &Metrics{
		actions: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_actions_total",
			Help: "Actions on instances by operation, reason and result: done, stale (came too late, and is planned anew) or failed."},
			[]string{"op", "reason", "result"}),
		planDuration: f.NewHistogram(prometheus.HistogramOpts{Name: "tapp_plan_duration_seconds",
			Help: "Duration of planning, without any I/O.", Buckets: prometheus.ExponentialBuckets(0.0001, 3, 10)}),
		statusWrites: f.NewCounter(prometheus.CounterOpts{Name: "tapp_status_writes_total",
			Help: "Writes of TApp statuses."}),
		staleRepairs: f.NewCounter(prometheus.CounterOpts{Name: "tapp_stale_cache_repairs_total",
			Help: "Plans that were made on a live view because the caches still lacked our own writes. A steady rate means that a watch is stuck."}),
		gatesLeft: f.NewCounter(prometheus.CounterOpts{Name: "tapp_gates_left_closed_total",
			Help: "Pods whose readiness gate could not be opened right after their creation; the next plan opens it."}),
		events: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_events_total",
			Help: "Events by reason and result: sent or failed."}, []string{"reason", "result"}),
	}
}
