//go:build cluster

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/test/cluster"
)

// prometheus is a real one, which scrapes what the chart's ServiceMonitor says and
// has the chart's rules.
type prometheus struct{ address string }

// need returns the path of one of Prometheus' programs.
func need(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), suite.Program("devcluster"), "need", program)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("devcluster need %s: %v", program, err)
	}
	return strings.TrimSpace(string(out))
}

// startPrometheus with the rules in a file.
func startPrometheus(t *testing.T, rules string) *prometheus {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheus{address: listener.Addr().String()}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// What the Prometheus Operator makes of the ServiceMonitor. Debian's Prometheus
	// cannot ask Kubernetes for the targets.
	config := map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{rules},
		"scrape_configs": []any{map[string]any{
			"job_name": "tapp", "honor_labels": true, "static_configs": targets(t),
		}},
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(need(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address) // outlives t.Context
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed
		if t.Failed() {
			out, _ := os.ReadFile(log.Name())
			t.Logf("Prometheus says:\n%s", out)
		}
	})
	cluster.Eventually(t, "Prometheus answers", func(ctx context.Context) error {
		_, err := p.query(ctx, "vector(1)")
		return err
	})
	return p
}

// targets are the addresses behind the metrics port of the chart's Service, with the
// labels that the ServiceMonitor gives them.
func targets(t *testing.T) []any {
	t.Helper()
	slices, err := suite.Kube.DiscoveryV1().EndpointSlices(releaseSpace).List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + releaseName})
	if err != nil {
		t.Fatal(err)
	}
	var out []any
	for _, s := range slices.Items {
		for _, port := range s.Ports {
			for _, e := range s.Endpoints {
				if *port.Name == "metrics" {
					out = append(out, map[string]any{
						"targets": []string{net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*port.Port)))},
						"labels":  map[string]string{"job": releaseName, "namespace": releaseSpace, "pod": e.TargetRef.Name},
					})
				}
			}
		}
	}
	return out
}

// sample is one of the answers to a query.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

func (s sample) value() string { return fmt.Sprint(s.Value[1]) }

// query asks Prometheus.
func (p *prometheus) query(ctx context.Context, query string) ([]sample, error) {
	var data struct{ Result []sample }
	if err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data); err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	return data.Result, nil
}

func (p *prometheus) get(ctx context.Context, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("answer %s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", response.Status, answer.Error)
	}
	return nil
}
