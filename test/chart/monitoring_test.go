package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)

var (
	everything  = release{name: "everything"}
	metricName  = regexp.MustCompile(`\b(tapp|process|go)_[a-z_]+\b`)
	metricLine  = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\|")
	histogramOf = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// documented are the metrics that docs/reference/metrics.md has, with their types.
func documented(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range metricLine.FindAllStringSubmatch(string(data), -1) {
		out[m[1]] = m[2]
	}
	if len(out) < 20 {
		t.Fatalf("docs/reference/metrics.md has %d metrics", len(out))
	}
	return out
}

// unknownMetrics are those of a query that TApp does not have.
func unknownMetrics(query string, known map[string]string) []string {
	var out []string
	for _, name := range metricName.FindAllString(query, -1) {
		if !strings.HasPrefix(name, "tapp_") {
			continue
		}
		if base := histogramOf.ReplaceAllString(name, ""); known[name] == "" && known[base] != "histogram" {
			out = append(out, name)
		}
	}
	return out
}

// TestAlerts: the metrics exist, and each alert has a text and a chapter in
// docs/operations.md. Whether Prometheus takes the rules is test/install's.
func TestAlerts(t *testing.T) {
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	known := documented(t)
	rule := the[*monitoringv1.PrometheusRule](t, decoded(t, everything))
	names := map[string]bool{}
	var all []monitoringv1.Rule
	for _, g := range rule.Spec.Groups {
		all = append(all, g.Rules...)
	}
	for _, r := range all {
		for _, name := range unknownMetrics(r.Expr.String(), known) {
			t.Errorf("%s%s asks for %s, which there is not", r.Alert, r.Record, name)
		}
		if r.Record != "" {
			continue
		}
		names[r.Alert] = true
		if !strings.Contains(string(operations), "\n### "+r.Alert+"\n") {
			t.Errorf("docs/operations.md has no chapter %s", r.Alert)
		}
		if want := "https://example.com/runbook#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s links to %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
			t.Errorf("%s lacks a summary, a description or a severity", r.Alert)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (TApp\w+)$`).FindAllStringSubmatch(string(operations), -1) {
		if !names[m[1]] {
			t.Errorf("docs/operations.md tells of %s, which is no alert", m[1])
		}
	}
}

// TestDashboard: it is JSON, its queries ask for metrics that exist, and its panels
// do not lie on each other.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chartDir, "files", "dashboards", "tapp.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	known, taken := documented(t), map[[2]int]string{}
	if len(dashboard.Panels) == 0 {
		t.Error("there are no panels")
	}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			for _, name := range unknownMetrics(target.Expr, known) {
				t.Errorf("%s asks for %s, which there is not", p.Title, name)
			}
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
