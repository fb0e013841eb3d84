package release

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tkestack.io/tapp/helm"
)

// renderer has a chart for each number.
type renderer struct{}

// Render implements the operator's Renderer. The archive is the number of the chart.
func (renderer) Render(_ context.Context, request helm.Request) (*helm.Rendered, error) {
	n, err := strconv.Atoi(string(request.Chart))
	if err != nil {
		return nil, fmt.Errorf("no such chart: %w", err)
	}
	objects := []string{configMap("first", n, "")}
	if n%2 == 0 {
		objects = append(objects, configMap("second", n, ""))
	}
	if n%3 != 1 {
		objects = append(objects, deployment(n))
	}
	if n%5 == 0 {
		objects = append(objects, configMap("kept", n, `, annotations: {helm.sh/resource-policy: keep}`))
	}
	out := &helm.Rendered{Chart: helm.ChartInfo{Name: "demo", Version: fmt.Sprintf("1.0.%d", n)}, Values: json.RawMessage(`{}`),
		Record: json.RawMessage(fmt.Sprintf(`{"metadata": {"name": "demo", "version": "1.0.%d", "apiVersion": "v2"}}`, n))}
	for i, text := range objects {
		out.Manifest += fmt.Sprintf("---\n# Source: demo/templates/%d.yaml\n%s", i, strings.TrimPrefix(text, "\n"))
	}
	if n%4 == 1 {
		out.Hooks = append(out.Hooks, hook("before", helm.PreInstall, helm.PreUpgrade, helm.PreDelete))
	}
	if n%4 >= 2 {
		out.Hooks = append(out.Hooks, hook("after", helm.PostInstall, helm.PostUpgrade, helm.PostDelete))
	}
	if hasFailure(n) {
		out.Hooks = append(out.Hooks, hook("fails", helm.PostInstall, helm.PostUpgrade))
	}
	return out, nil
}

// hasFailure says whether a hook of a chart fails.
func hasFailure(n int) bool { return n%7 == 3 }

func configMap(name string, n int, more string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s%s}\ndata: {n: \"%d\"}\n", name, namespace, more, n)
}

func deployment(n int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec: {containers: [{name: main, image: "demo:v%d"}]}
`, name, namespace, name, name, n)
}

func hook(name string, events ...string) helm.Hook {
	return helm.Hook{Name: name, Kind: "Job", Path: "demo/templates/" + name + ".yaml", Events: events, DeletePolicies: []string{helm.BeforeHookCreation, helm.HookSucceeded},
		Manifest: fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s, namespace: %s, annotations: {helm.sh/hook: \"%s\"}}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: demo}]}}}\n",
			name, namespace, strings.Join(events, ","))}
}
