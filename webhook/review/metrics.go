package review

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	admissionv1 "k8s.io/api/admission/v1"
)

// Metrics of reviews, by webhook.
type Metrics struct {
	duration  *prometheus.HistogramVec
	verdicts  *prometheus.CounterVec
	malformed *prometheus.CounterVec
	refused   *prometheus.CounterVec
	panics    *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	f := promauto.With(registerer)
	return &Metrics{
		duration: f.NewHistogramVec(prometheus.HistogramOpts{Name: "tapp_admission_duration_seconds",
			Help: "Duration of reviews by webhook and operation, with the dry-run creates of pods.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)},
			[]string{"webhook", "operation"}),
		verdicts: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_admission_verdicts_total",
			Help: "Verdicts by webhook and rule: allowed, warned or denied. A review counts once for each rule that warned or denied, or once as allowed, without a rule."},
			[]string{"webhook", "verdict", "rule"}),
		malformed: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_admission_malformed_requests_total",
			Help: "Requests that were no AdmissionReview, by webhook."}, []string{"webhook"}),
		refused: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_admission_refused_requests_total",
			Help: "Reviews that got no answer, by webhook and reason: busy, because too many were under way, or late, because the time was over."}, []string{"webhook", "reason"}),
		panics: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_admission_panics_total",
			Help: "Reviews that a panic broke off, by webhook."}, []string{"webhook"}),
	}
}

// observe a review that was answered.
func (m *Metrics) observe(webhook string, r *admissionv1.AdmissionRequest, a Answer, took time.Duration) {
	m.duration.WithLabelValues(webhook, operationOf(r)).Observe(took.Seconds())
	for _, rule := range a.DeniedBy {
		m.verdicts.WithLabelValues(webhook, "denied", rule).Inc()
	}
	for _, rule := range a.WarnedBy {
		m.verdicts.WithLabelValues(webhook, "warned", rule).Inc()
	}
	if len(a.DeniedBy)+len(a.WarnedBy) == 0 {
		m.verdicts.WithLabelValues(webhook, "allowed", "").Inc()
	}
}

// operationOf a request as a label. Callers may send anything, and each value of a
// label takes memory for as long as the process runs.
func operationOf(r *admissionv1.AdmissionRequest) string {
	switch r.Operation {
	case admissionv1.Create:
		return "create"
	case admissionv1.Update:
		return "update"
	case admissionv1.Delete:
		return "delete"
	case admissionv1.Connect:
		return "connect"
	}
	return "other"
}
