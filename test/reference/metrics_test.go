package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/ptr"
)

// TestNames: all metrics follow Prometheus' rules, also those that have no sample
// yet, whose names begin with ours, and each is registered once.
func TestNames(t *testing.T) {
	families, err := registered()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var linted []*dto.MetricFamily
	for _, f := range families {
		if seen[f.name] {
			t.Errorf("%s is registered twice", f.name)
		}
		seen[f.name] = true
		if bytes.HasPrefix([]byte(f.name), []byte("tapp_")) {
			linted = append(linted, f.sample())
		}
	}
	if len(linted) < 25 {
		t.Errorf("%d metrics are ours; want all of them", len(linted))
	}
	problems, err := promlint.NewWithMetricFamilies(linted).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// sample is what a scrape would show of the metric.
func (f family) sample() *dto.MetricFamily {
	m := &dto.Metric{}
	for _, l := range f.labels {
		m.Label = append(m.Label, &dto.LabelPair{Name: ptr.To(l), Value: ptr.To("x")})
	}
	kind := dto.MetricType_GAUGE
	switch f.kind {
	case "counter":
		kind, m.Counter = dto.MetricType_COUNTER, &dto.Counter{}
	case "histogram":
		kind, m.Histogram = dto.MetricType_HISTOGRAM, &dto.Histogram{}
	default:
		m.Gauge = &dto.Gauge{}
	}
	return &dto.MetricFamily{Name: ptr.To(f.name), Help: ptr.To(f.help), Type: &kind, Metric: []*dto.Metric{m}}
}

// TestPage: every kind of metric is written as it is, and `make generate` was run.
func TestPage(t *testing.T) {
	r := &recorder{Registry: prometheus.NewRegistry()}
	f := promauto.With(r)
	f.NewHistogramVec(prometheus.HistogramOpts{Name: "tapp_b_seconds", Help: "How long (\"b\")."}, []string{"x", "y"})
	f.NewCounter(prometheus.CounterOpts{Name: "tapp_a_total", Help: "This | that."})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "tapp_c", Help: "Now."}, func() float64 { return 1 })
	f.NewGauge(prometheus.GaugeOpts{Name: "go_other", Help: "Not ours."})
	var got bytes.Buffer
	write(&got, r.families)
	want := intro + "| `tapp_a_total` | counter |  | This \\| that. |\n" +
		"| `tapp_b_seconds` | histogram | `x`, `y` | How long (\"b\"). |\n" +
		"| `tapp_c` | gauge |  | Now. |\n"
	if got.String() != want || r.err != nil {
		t.Errorf("got %s and error %v", got.String(), r.err)
	}

	families, err := registered()
	if err != nil {
		t.Fatal(err)
	}
	got.Reset()
	write(&got, families)
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil || !bytes.Equal(page, got.Bytes()) {
		t.Errorf("metrics.md is not up to date (%v): run `make generate`", err)
	}
}
