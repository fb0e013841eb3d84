package chart

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestLabels: labels that users give are beside those of the chart, whichever of them are given,
// and a key is there once.
func TestLabels(t *testing.T) {
	values := valuesOf(t, "everything")
	more := map[string]any{"team": "a", "tier": "b"}
	values["commonLabels"], values["podLabels"] = more, map[string]any{"team": "pods"}
	metrics, _ := values["metrics"].(map[string]any)
	for _, name := range []string{"serviceMonitor", "prometheusRule", "dashboard"} {
		below, _ := metrics[name].(map[string]any)
		below["labels"] = map[string]any{"team": name}
	}
	values["podAnnotations"] = map[string]any{"kubectl.kubernetes.io/default-container": "other"}
	files, err := render(load(t), values, releases[4].apis...)
	if err != nil {
		t.Fatal(err)
	}
	teams := map[string]int{}
	for _, text := range objects(files) {
		object := map[string]any{}
		if err := yaml.UnmarshalStrict(text, &object); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
			in := object
			for _, name := range path {
				in, _ = in[name].(map[string]any)
			}
			labels, _ := in["labels"].(map[string]any)
			if labels == nil {
				continue
			}
			teams[fmt.Sprint(labels["team"])]++
			if labels["tier"] != "b" || labels["app.kubernetes.io/managed-by"] != "Helm" {
				t.Errorf("%s %v has %v", object["kind"], object["metadata"], labels)
			}
		}
	}
	if teams["pods"] != 2 || teams["serviceMonitor"] != 2 || teams["prometheusRule"] != 1 || teams["dashboard"] != 1 || len(teams) != 5 {
		t.Errorf("labels of teams: %v", teams)
	}
}

// TestOwnLabels: no label that the chart sets itself can be given, and what is said.
func TestOwnLabels(t *testing.T) {
	all := valuesOf(t, "everything")
	all["commonLabels"], all["podLabels"] = nil, nil
	metrics, _ := all["metrics"].(map[string]any)
	for _, name := range []string{"serviceMonitor", "prometheusRule", "dashboard"} {
		below, _ := metrics[name].(map[string]any)
		below["labels"] = nil
	}
	files, err := render(load(t), all, releases[4].apis...)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, text := range objects(files) {
		var object struct {
			Metadata struct{ Labels map[string]string }
		}
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		for key := range object.Metadata.Labels {
			own[key] = true
		}
	}
	for _, key := range sortedKeys(own) {
		for _, path := range []string{"commonLabels", "podLabels", "metrics.serviceMonitor.labels"} {
			values := map[string]any{"metrics": map[string]any{"serviceMonitor": map[string]any{"enabled": true}}}
			in := values
			names := strings.Split(path, ".")
			for _, name := range names[:len(names)-1] {
				in = in[name].(map[string]any)
			}
			in[names[len(names)-1]] = map[string]any{key: "x"}
			_, err := render(load(t), values)
			if want := fmt.Sprintf("%s: %s is a label that the chart sets itself: leave it out", path, key); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want %s", err, want)
			}
		}
	}
}

// TestNull: a value that is taken away, which --set NAME=null does, is as good as the default, or
// refused by its path.
func TestNull(t *testing.T) {
	c := load(t)
	for _, path := range paths("", c.Values) {
		for _, r := range []release{releases[0], releases[4], releases[5]} {
			values := valuesOf(t, r.name)
			in := values
			names := strings.Split(path, "/")[1:]
			for _, name := range names[:len(names)-1] {
				below, ok := in[name].(map[string]any)
				if !ok {
					below = map[string]any{}
					in[name] = below
				}
				in = below
			}
			in[names[len(names)-1]] = nil
			files, err := render(c, values, r.apis...)
			at := strings.Join(names[:len(names)-1], "/")
			if at != "" {
				at = "/" + at
			}
			switch said := fmt.Sprintf("at '%s': missing property '%s'", at, names[len(names)-1]); {
			case err != nil && !strings.Contains(err.Error(), said):
				t.Errorf("%s: %s: got error %v, want none, or %s", r.name, path, err, said)
			case strings.Contains(fmt.Sprint(files), "<nil>"):
				t.Errorf("%s: %s is missing, and something has the value <nil>", r.name, path)
			}
		}
	}
}

// paths of all values.
func paths(path string, values map[string]any) []string {
	var out []string
	for _, name := range sortedKeys(values) {
		out = append(out, path+"/"+name)
		if below, ok := values[name].(map[string]any); ok {
			out = append(out, paths(path+"/"+name, below)...)
		}
	}
	return out
}
