package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of an API. Labels are routes and codes, of which there are few.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	ended    *prometheus.CounterVec
	panics   prometheus.Counter
}

func newMetrics(registry prometheus.Registerer, a *API) *metrics {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	factory := promauto.With(registry)
	m := &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{Name: "tapp_http_requests_total",
			Help: "Requests to the HTTP API that were answered, by route and code."}, []string{"route", "code"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{Name: "tapp_http_request_duration_seconds",
			Help: "How long requests to the HTTP API took, by route; streams are as long as they last.", Buckets: []float64{.005, .025, .1, .5, 2.5, 10, 60, 600}}, []string{"route"}),
		ended: factory.NewCounterVec(prometheus.CounterOpts{Name: "tapp_http_streams_ended_total",
			Help: "Streams of the HTTP API that the server ended, by reason: slow, denied, gone, ending."}, []string{"reason"}),
		panics: factory.NewCounter(prometheus.CounterOpts{Name: "tapp_http_panics_total",
			Help: "Panics of what the HTTP API computes beside requests: each is a bug, and the log has its stack."}),
	}
	factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "tapp_http_streams", Help: "Streams of the HTTP API that are open."}, func() float64 { return float64(a.streams.Count()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "tapp_http_watches", Help: "Watches of the API server that the HTTP API shares among its callers."}, func() float64 { return float64(a.topics.Watches()) })
	return m
}

func (m *metrics) observe(route string, code int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}
