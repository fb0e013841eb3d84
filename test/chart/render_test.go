// Package chart tests the Helm chart with Helm's own packages, and no cluster: what
// it renders, which values it takes, and what Argo CD is told of a TApp. It is a
// module of its own, so that the product does not require Helm.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const (
	chartDir    = "../../chart"
	examplesDir = chartDir + "/examples"
	namespace   = "tapp-system"
	crdFile     = "templates/crds.yaml"
	policies    = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
	notesFile   = "templates/NOTES.txt"
)

// release is one way to install the chart: the values of testdata/values/NAME.yaml, or of
// the chart's examples/NAME.yaml.
type release struct {
	name string
	// apis are what the cluster has beside Kubernetes itself.
	apis []string
}

var releases = []release{
	{name: "default", apis: []string{policies}},
	{name: "cert-manager", apis: []string{"cert-manager.io/v1"}},
	{name: "provided", apis: []string{"cert-manager.io/v1"}},
	{name: "one-namespace"},
	{name: "everything", apis: []string{policies}},
	{name: "split", apis: []string{policies}},
	{name: "nothing"},
	{name: "openshift", apis: []string{policies}},
	{name: "gke-private", apis: []string{policies}},
	{name: "eks-overlay", apis: []string{policies}},
}

func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func valuesOf(t *testing.T, name string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "values", name+".yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = os.ReadFile(filepath.Join(examplesDir, name+".yaml"))
	}
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// render returns the text of each template by its path below the chart; those that
// give nothing are left out.
func render(c *chartv2.Chart, values map[string]any, apis ...string) (map[string]string, error) {
	if image, given := values["image"].(map[string]any); !given || image["repository"] == nil { // which has no default
		values = util.CoalesceTables(map[string]any{"image": map[string]any{"repository": "example.com/tapp"}}, values)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), apis...)
	options := common.ReleaseOptions{Name: "tapp", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, options, capabilities)
	if err != nil {
		return nil, fmt.Errorf("checking the values: %w", err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, fmt.Errorf("rendering: %w", err)
	}
	out := map[string]string{}
	for name, text := range files {
		if strings.TrimSpace(text) != "" && path.Base(name) != "_helpers.tpl" {
			out[strings.TrimPrefix(name, c.Name()+"/")] = text
		}
	}
	return out, nil
}

func mustRender(t *testing.T, r release) map[string]string {
	t.Helper()
	files, err := render(load(t), valuesOf(t, r.name), r.apis...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// objects splits the rendered files into their objects.
func objects(files map[string]string) [][]byte {
	var out [][]byte
	for _, name := range sortedKeys(files) {
		if name == notesFile {
			continue
		}
		for text := range strings.SplitSeq("\n"+files[name], "\n---\n") {
			if trimmed := bytes.TrimSpace([]byte(text)); len(trimmed) > 0 {
				out = append(out, trimmed)
			}
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
