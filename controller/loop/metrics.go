package loop

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/client-go/util/workqueue"

	"tkestack.io/tapp/process/parallel"
)

// Metrics of all loops of a process; its nil does nothing. It implements the
// metrics provider of client-go's work queues.
type Metrics struct {
	depth      *prometheus.GaugeVec
	adds       *prometheus.CounterVec
	latency    *prometheus.HistogramVec
	unfinished *prometheus.GaugeVec
	longest    *prometheus.GaugeVec
	duration   *prometheus.HistogramVec
	errors     *prometheus.CounterVec
	panics     *prometheus.CounterVec
}

var _ workqueue.MetricsProvider = (*Metrics)(nil)

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	f := promauto.With(registerer)
	labels := []string{"queue"}
	buckets := prometheus.ExponentialBuckets(0.0001, 4, 10) // 0.1 ms to 26 s
	return &Metrics{
		depth: f.NewGaugeVec(prometheus.GaugeOpts{Name: "tapp_queue_depth",
			Help: "Keys that wait for a worker."}, labels),
		adds: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_queue_adds_total",
			Help: "Keys that came due; events that were coalesced count once."}, labels),
		latency: f.NewHistogramVec(prometheus.HistogramOpts{Name: "tapp_queue_wait_seconds",
			Help: "How long due keys waited for a worker.", Buckets: buckets}, labels),
		unfinished: f.NewGaugeVec(prometheus.GaugeOpts{Name: "tapp_queue_unfinished_seconds",
			Help: "Sum of how long the syncs under way have taken so far; a large value means that some are stuck."}, labels),
		longest: f.NewGaugeVec(prometheus.GaugeOpts{Name: "tapp_queue_longest_running_seconds",
			Help: "How long the oldest sync under way has taken so far."}, labels),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{Name: "tapp_sync_duration_seconds",
			Help: "Duration of syncs, their writes included.", Buckets: buckets}, labels),
		errors: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_sync_errors_total",
			Help: "Syncs that failed and are tried again."}, labels),
		panics: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_sync_panics_total",
			Help: "Syncs that panicked: each is a bug, and the log has its stack."}, labels),
	}
}

func (m *Metrics) synced(name string, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.duration.WithLabelValues(name).Observe(took.Seconds())
	if err != nil {
		m.errors.WithLabelValues(name).Inc()
	}
}

// Contain calls f, and turns a panic into an error, which is counted under the name.
func (m *Metrics) Contain(name string, f func() error) error {
	return parallel.Contain(func() {
		if m != nil {
			m.panics.WithLabelValues(name).Inc()
		}
	}, f)
}

// Container is Contain under the name, for what knows no metrics.
func (m *Metrics) Container(name string) func(f func() error) error {
	return func(f func() error) error { return m.Contain(name, f) }
}

// NewDepthMetric implements workqueue.MetricsProvider, as the others below do.
func (m *Metrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	g := m.depth.WithLabelValues(name)
	g.Set(0) // an earlier run may have ended with keys left
	return g
}

// NewAddsMetric counts keys that came due.
func (m *Metrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

// NewLatencyMetric observes waiting times.
func (m *Metrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.latency.WithLabelValues(name)
}

// NewWorkDurationMetric observes nothing: the loop measures syncs itself.
func (m *Metrics) NewWorkDurationMetric(string) workqueue.HistogramMetric { return unobserved{} }

// NewUnfinishedWorkSecondsMetric shows syncs that hang.
func (m *Metrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

// NewLongestRunningProcessorSecondsMetric shows the sync that hangs longest.
func (m *Metrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}

// NewRetriesMetric counts nothing: to the queue every delayed key is a retry.
func (m *Metrics) NewRetriesMetric(string) workqueue.CounterMetric { return unobserved{} }

type unobserved struct{}

func (unobserved) Observe(float64) {}
func (unobserved) Inc()            {}
