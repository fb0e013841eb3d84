//go:build cluster

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/test/cluster"
)

// TestMetrics: a real Prometheus scrapes both pods, has the series that alerts and
// dashboards ask for, takes the rules, and raises an alert for a TApp that is stuck.
func TestMetrics(t *testing.T) {
	r := newRig(t)
	rules := ruleFile(t)
	if out, err := exec.CommandContext(t.Context(), need(t, "promtool"), "check", "rules", rules).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	firing(t, rules)
	install(t)
	rolledOut(t)
	r.answers()
	p := startPrometheus(t, rules)
	r.apply(goodTApp("web", 2, "nginx:1.25"))
	r.apply(stuckTApp)
	r.WaitReady("web")

	for _, c := range []struct{ query, want string }{
		{`sum(up{job="tapp", namespace="tapp-system"})`, "2"},
		{`sum(tapp_leader{job="tapp", namespace="tapp-system"})`, "1"},
		{`count(tapp_build_info{job="tapp", namespace="tapp-system"})`, "2"},
		// The TApp's namespace, not the pod's.
		{fmt.Sprintf(`sum(tapp_instances{namespace=%q, tapp="web", state="Running"})`, r.NS), "2"},
		{fmt.Sprintf(`max(tapp_condition{namespace=%q, tapp="stuck", condition="Stalled"})`, r.NS), "1"},
		{`sum(tapp_admission_verdicts_total{job="tapp", verdict="denied", rule="TemplateReferences"}) > bool 0`, "1"},
		{`min(tapp_certificate_expiry_timestamp_seconds{job="tapp"}) - time() > bool 3600`, "1"},
		{`sum(rate(tapp_api_requests_total{job="tapp"}[1m])) > bool 0`, "1"},
		{fmt.Sprintf(`count(ALERTS{alertname="TAppStalled", alertstate="pending", namespace=%q, tapp="stuck"})`, r.NS), "1"},
		{`count(ALERTS{alertname!="TAppStalled"}) or vector(0)`, "0"},
	} {
		cluster.Eventually(t, c.query, func(ctx context.Context) error {
			samples, err := p.query(ctx, c.query)
			if err != nil {
				return err
			}
			if len(samples) != 1 || samples[0].value() != c.want {
				return fmt.Errorf("got %v, want %s", samples, c.want)
			}
			return nil
		})
	}
	healthyRules(t, p)
}

// firing: which alerts fire on a good day and on a bad one.
func firing(t *testing.T, rules string) {
	t.Helper()
	cases, err := os.ReadFile(filepath.Join("testdata", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(rules), "alerts.yaml") // it names the rules beside it
	if err := os.WriteFile(file, cases, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), need(t, "promtool"), "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// healthyRules: Prometheus can evaluate every rule.
func healthyRules(t *testing.T, p *prometheus) {
	t.Helper()
	cluster.Eventually(t, "the rules are evaluated", func(ctx context.Context) error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := p.get(ctx, "/api/v1/rules", &data); err != nil {
			return err
		}
		if len(data.Groups) != 2 || len(data.Groups[0].Rules) < 10 || len(data.Groups[1].Rules) != 9 {
			return fmt.Errorf("Prometheus has the rules %+v", data)
		}
		for _, group := range data.Groups {
			for _, r := range group.Rules {
				if r.Health != "ok" {
					return fmt.Errorf("%s: %s %s", r.Name, r.Health, r.LastError)
				}
			}
		}
		return nil
	})
}

// ruleFile is the chart's PrometheusRule as Prometheus itself reads it.
func ruleFile(t *testing.T) string {
	t.Helper()
	manifest := helm(t, "template", releaseName, chartDir, "--set", "metrics.prometheusRule.enabled=true", "--show-only", "templates/prometheusrule.yaml")
	var rule struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(manifest), &rule); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(rule.Spec)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// stuckTApp never gets ready, and says so after a second.
const stuckTApp = `
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: stuck}
spec:
  replicas: 1
  progressDeadlineSeconds: 1
  template:
    metadata: {labels: {app: stuck}}
    spec: {containers: [{name: web, image: "no-such-image:v1"}]}
`
