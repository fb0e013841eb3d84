package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// TestBadValues: what is refused, and with which words.
func TestBadValues(t *testing.T) {
	for _, c := range []struct {
		values, want string
	}{
		{`replica: 3`, `additional properties 'replica' not allowed`},
		{`replicas: two`, `at '/replicas': got string, want integer`},
		{`replicas: -1`, `at '/replicas': minimum: got -1, want 0`},
		{`image: {repository: 7}`, `at '/image/repository': got number, want string`},
		{`securityContext: none`, `at '/securityContext': got string, want object`},
		{`image: {pullPolicy: Sometimes}`, `at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'`},
		{`image: {digest: latest}`, `at '/image/digest': 'latest' does not match pattern`},
		{`imagePullSecrets: [pull]`, `at '/imagePullSecrets/0': got string, want object`},
		{`namespace: Shop`, `at '/namespace': 'Shop' does not match pattern`},
		{`controller: {workers: 0}`, `at '/controller/workers': minimum: got 0, want 1`},
		{`controller: {nodeLostAfter: 300}`, `at '/controller/nodeLostAfter': got number, want string`},
		{`controller: {nodeLostAfter: 5 minutes}`, `at '/controller/nodeLostAfter': '5 minutes' does not match pattern`},
		{`controller: {defaultTopologySpread: List}`, `at '/controller/defaultTopologySpread': value must be one of 'None', 'System'`},
		{`webhook: {failurePolicy: Warn}`, `at '/webhook/failurePolicy': value must be one of 'Fail', 'Ignore'`},
		{`webhook: {timeoutSeconds: 60}`, `at '/webhook/timeoutSeconds': maximum: got 60, want 30`},
		{`webhook: {port: 70000}`, `at '/webhook/port': maximum: got 70,000, want 65,535`},
		{`tls: {mode: vault}`, `at '/tls/mode': value must be one of '', 'certManager', 'selfManaged', 'provided'`},
		{`tls: {mode: provided}`, `at '/tls/provided/secretName': minLength: got 0, want 1`},
		{`tls: {mode: provided, provided: {secretName: x, caBundle: nonsense}}`, `at '/tls/provided/caBundle': 'nonsense' does not match pattern`},
		{`tls: {certManager: {issuerRef: {kind: ClusterIssuer}}}`, `at '/tls/certManager/issuerRef': properties 'name' required, if 'kind' exists`},
		{`logging: {format: xml}`, `at '/logging/format': value must be one of 'text', 'json'`},
		{`extraArgs: [worker=3]`, `at '/extraArgs/0': 'worker=3' does not match pattern`},
		{`commonLabels: {replicas: 3}`, `at '/commonLabels/replicas': got number, want string`},
		{`podDisruptionBudget: {maxUnavailable: 0}`, `at '/podDisruptionBudget/maxUnavailable': minimum: got 0, want 1`},
		{`webhook: {endingSeconds: 600}`, `at '/webhook/endingSeconds': maximum: got 600, want 60`},
		{`metrics: {prometheusRule: {runbookURL: docs}}`, `at '/metrics/prometheusRule/runbookURL': 'docs' does not match pattern`},
	} {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(c.values), &values); err != nil {
			t.Fatal(err)
		}
		_, err := render(load(t), values)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot error  %v\nwant        %s", c.values, err, c.want)
		}
	}
}

// TestSchemaIsComplete: the schema knows each value of values.yaml, and no other.
func TestSchemaIsComplete(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	schema := map[string]any{}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	for _, problem := range compare("", schema, load(t).Values) {
		t.Error(problem)
	}
}

func compare(at string, schema, values map[string]any) []string {
	var problems []string
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range sortedKeys(properties) {
		path := at + "/" + name
		value, ok := values[name]
		if !ok && path != "/global" {
			problems = append(problems, path+" is in the schema, and not in values.yaml")
			continue
		}
		below, _ := properties[name].(map[string]any)
		if object, ok := value.(map[string]any); ok && below["properties"] != nil && len(object) > 0 {
			if below["additionalProperties"] != false {
				problems = append(problems, path+" lets misspelt names pass: additionalProperties is not false")
			}
			problems = append(problems, compare(path, below, object)...)
		}
	}
	for _, name := range sortedKeys(values) {
		if properties[name] == nil {
			problems = append(problems, fmt.Sprintf("%s/%s is in values.yaml, and not in the schema", at, name))
		}
	}
	return problems
}

// TestEveryValueIsUsed: testdata/values/everything.yaml sets every value, and each of
// them matters to what is rendered.
func TestEveryValueIsUsed(t *testing.T) {
	c, all := load(t), valuesOf(t, "everything")
	all["crds"] = map[string]any{"install": false}
	whole := fmt.Sprint(mustRenderValues(t, c, all))
	for _, path := range leaves("", c.Values) {
		if why := elsewhere[path]; why != "" {
			continue
		}
		before, after, there := at(all, path)
		if !there {
			t.Errorf("%s is not in testdata/values/everything.yaml", path)
			continue
		}
		delete(before, after)
		if fmt.Sprint(mustRenderValues(t, c, all)) == whole {
			t.Errorf("%s changes nothing", path)
		}
		all = valuesOf(t, "everything")
		all["crds"] = map[string]any{"install": false}
	}
}

// elsewhere are values that cannot matter beside all others, and where they do.
var elsewhere = map[string]string{
	"/admissionPolicies/enabled":                  "default; TestPoliciesOff",
	"/api/tls/secretName":                         "one-namespace",
	"/api/resources/requests/cpu":                 "a map that is merged",
	"/api/resources/requests/memory":              "a map that is merged",
	"/crds/install":                               "nothing",
	"/image/tag":                                  "the digest wins; TestImage",
	"/namespace":                                  "one-namespace",
	"/podDisruptionBudget/enabled":                "nothing",
	"/podSecurityContext/runAsNonRoot":            "a map that is merged",
	"/securityContext/allowPrivilegeEscalation":   "a map that is merged",
	"/securityContext/capabilities/drop":          "a map that is merged",
	"/securityContext/readOnlyRootFilesystem":     "a map that is merged",
	"/rbac/aggregate":                             "nothing",
	"/rbac/create":                                "nothing",
	"/serviceAccount/create":                      "nothing",
	"/split/enabled":                              "split",
	"/split/webhookExtraArgs":                     "split",
	"/split/webhookServiceAccount":                "split",
	"/tls/certManager/caDuration":                 "there is another issuer; TestOwnCA",
	"/tls/certManager/caRenewBefore":              "there is another issuer; TestOwnCA",
	"/tls/provided/caBundle":                      "provided",
	"/tls/provided/secretName":                    "provided",
	"/metrics/dashboard/labels":                   "a map that is merged",
	"/resources/requests/cpu":                     "a map that is merged",
	"/resources/requests/memory":                  "a map that is merged",
	"/metrics/dashboard/labels/grafana_dashboard": "a map that is merged",
}

// leaves are the paths of all values that are no map, or an empty one.
func leaves(path string, values map[string]any) []string {
	var out []string
	for _, name := range sortedKeys(values) {
		if below, ok := values[name].(map[string]any); ok && len(below) > 0 {
			out = append(out, leaves(path+"/"+name, below)...)
		} else {
			out = append(out, path+"/"+name)
		}
	}
	return out
}

// at finds a value: the map that has it, and its name there.
func at(values map[string]any, path string) (in map[string]any, name string, there bool) {
	names := strings.Split(path, "/")[1:]
	for _, n := range names[:len(names)-1] {
		values, _ = values[n].(map[string]any)
	}
	name = names[len(names)-1]
	_, there = values[name]
	return values, name, there
}

func mustRenderValues(t *testing.T, c *chartv2.Chart, values map[string]any) map[string]string {
	t.Helper()
	files, err := render(c, values)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestImage(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{`image: {repository: ""}`, `image: ""`},
		{`image: {}`, "image: example.com/tapp:" + load(t).Metadata.AppVersion},
		{`image: {repository: example.com/tapp, tag: v2}`, "image: example.com/tapp:v2"},
	} {
		if got := mustRenderValues(t, load(t), tree(t, []byte(c.values)))["templates/deployment.yaml"]; !strings.Contains(got, " "+c.want+"\n") {
			t.Errorf("%s: want %s in\n%s", c.values, c.want, got)
		}
	}
}

func TestOwnCA(t *testing.T) {
	values := tree(t, []byte(`tls: {mode: certManager, certManager: {duration: 1h, renewBefore: 30m, caDuration: 3h, caRenewBefore: 2h}}`))
	got := mustRenderValues(t, load(t), values)["templates/certificate.yaml"]
	for _, want := range []string{"duration: 1h", "renewBefore: 30m", "duration: 3h", "renewBefore: 2h"} {
		if !strings.Contains(got, " "+want+"\n") {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}
