package controller

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// requestMetrics count the requests to the API server. client-go's own hooks are
// global to a process.
type requestMetrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newRequestMetrics(registerer prometheus.Registerer) *requestMetrics {
	f := promauto.With(registerer)
	return &requestMetrics{
		total: f.NewCounterVec(prometheus.CounterOpts{Name: "tapp_api_requests_total",
			Help: "Requests to the API server by verb, resource and HTTP code; no code: no answer."}, []string{"verb", "resource", "code"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{Name: "tapp_api_request_duration_seconds",
			Help: "Duration of requests to the API server but watches, until the answer began.", Buckets: prometheus.ExponentialBuckets(0.001, 3, 10)},
			[]string{"verb", "resource"}),
	}
}

func (m *requestMetrics) wrap(next http.RoundTripper) http.RoundTripper {
	return &counted{next: next, metrics: m}
}

type counted struct {
	next    http.RoundTripper
	metrics *requestMetrics
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	verb, resource := verbAndResource(r)
	began := time.Now()
	response, err := c.next.RoundTrip(r)
	code := ""
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	c.metrics.total.WithLabelValues(verb, resource, code).Inc()
	if verb != "watch" {
		c.metrics.duration.WithLabelValues(verb, resource).Observe(time.Since(began).Seconds())
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport inside.
func (c *counted) WrappedRoundTripper() http.RoundTripper { return c.next }

// verbAndResource of a request, in the API's words: "patch" and "pods/status".
func verbAndResource(r *http.Request) (verb, resource string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return strings.ToLower(r.Method), "other"
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	resource = parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	one := len(parts) > 1
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") == "true":
		verb = "watch"
	case r.Method == http.MethodGet && !one:
		verb = "list"
	case r.Method == http.MethodPost:
		verb = "create"
	case r.Method == http.MethodPut:
		verb = "update"
	default:
		verb = strings.ToLower(r.Method)
	}
	return verb, resource
}
