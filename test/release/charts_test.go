//go:build cluster

package release

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tkestack.io/tapp/helm"
)

// publicCharts are charts as their projects publish them, in the modules of their
// programs: the module proxy has them, and sums say that they are the same each time.
var publicCharts = []struct {
	name   string
	module string // path@version; "": this repository
	sum    string
	folder string
	// values beside none, with which the chart is rendered too.
	values string
	// The figures keep a chart from being compared as empty.
	objects, hooks, crds int
}{
	{"tapp", "", "", "../../chart", "controllers: {app: {enabled: true}}\n", 18, 6, 0},
	{"cert-manager", "github.com/cert-manager/cert-manager@v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=", "deploy/charts/cert-manager", "crds: {enabled: true}\nprometheus: {servicemonitor: {enabled: true}}\n", 40, 4, 0},
	{"metrics-server", "sigs.k8s.io/metrics-server@v0.9.0", "h1:nlqqZ2H0Xfko8eJC/1qaNVVT17hu4rxndkOi22KTZ4w=", "charts/metrics-server", "replicas: 2\nmetrics: {enabled: true}\n", 9, 0, 0},
	{"kwok", "sigs.k8s.io/kwok@v0.8.0", "h1:OTIOTwgROqPMovcTwxICx2eYQ4AwLpSx5EpjbDKF4SQ=", "charts/kwok", "replicas: 2\n", 7, 0, 0},
	{"ingress-nginx", "k8s.io/ingress-nginx@v0.0.0-20240708192948-52c50467d67d", "h1:tZui5g6S4GO1hxLm6yrEoIXLkl4QfeGytlmZqZ+DmdQ=", "charts/ingress-nginx", "controller: {kind: Both, autoscaling: {enabled: true}, metrics: {enabled: true}}\ndefaultBackend: {enabled: true}\n", 11, 7, 0},
	{"descheduler", "sigs.k8s.io/descheduler@v0.36.0", "h1:fBemfJD1RhmbsdH94lKwGMOwQcbsrw67A5IK2c2fANA=", "charts/descheduler", "kind: Deployment\nleaderElection: {enabled: true}\n", 5, 0, 0},
	{"kueue", "sigs.k8s.io/kueue@v0.17.0", "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=", "charts/kueue", "enableCertManager: true\n", 78, 0, 0},
	{"gatekeeper", "github.com/open-policy-agent/gatekeeper/v3@v3.23.1", "h1:njHTm0SJ6ZEhhEgmQTpJKTGQbc99fSs4hGiEp1OIKck=", "charts/gatekeeper", "replicas: 2\npostInstall: {probeWebhook: {enabled: false}}\n", 13, 8, 17},
}

// folderOf finds the chart's files.
func folderOf(t *testing.T, module, sum, folder string) string {
	t.Helper()
	if module == "" {
		return folder
	}
	away := t.TempDir()
	if err := os.WriteFile(filepath.Join(away, "go.mod"), []byte("module charts\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	download.Dir, download.Env = away, append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := download.Output()
	if err != nil {
		t.Fatalf("go mod download %s: %v\n%s", module, err, out)
	}
	var found struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	if found.Sum != sum {
		t.Fatalf("%s has the sum %s, and not %s", module, found.Sum, sum)
	}
	return filepath.Join(found.Dir, folder)
}

// TestPublicCharts: what tapp renders is what `helm template` renders, field by field
// and in its order, hooks and crds too.
func TestPublicCharts(t *testing.T) {
	r := newRig(t)
	for _, c := range publicCharts {
		t.Run(c.name, func(t *testing.T) {
			r := &rig{Cluster: r.Cluster, t: t, namespace: r.namespace}
			packages := t.TempDir()
			r.helm("package", folderOf(t, c.module, c.sum, c.folder), "--destination", packages)
			files, err := filepath.Glob(filepath.Join(packages, "*.tgz"))
			if err != nil || len(files) != 1 {
				t.Fatalf("helm package made %v, %v", files, err)
			}
			archive, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, values := range []string{"", c.values} {
				r.compare(archive, files[0], values, [3]int{c.objects, c.hooks, c.crds})
			}
		})
	}
}

const (
	kubeVersion = "v1.37.2"
	monitoring  = "monitoring.coreos.com/v1"
)

func (r *rig) compare(archive []byte, file, values string, least [3]int) {
	r.t.Helper()
	with := filepath.Join(r.t.TempDir(), "values.yaml")
	if err := os.WriteFile(with, []byte(values), 0o600); err != nil {
		r.t.Fatal(err)
	}
	apis := append(strings.Fields(defaultAPIs(r)), monitoring)
	ours := r.render(helm.Request{Chart: archive, Release: "blue", Values: []string{values}, KubeVersion: kubeVersion, APIVersions: apis})

	// Helm prints crds, then objects, then hooks, whose order is another one.
	theirs := objectsOf(r.t, r.helm("template", "blue", file, "--values", with, "--kube-version", kubeVersion, "--api-versions", monitoring, "--include-crds"))
	crds, plain := objectsOf(r.t, ours.CRDs), objectsOf(r.t, ours.Manifest)
	var hooks strings.Builder
	for _, h := range ours.Hooks {
		fmt.Fprintf(&hooks, "---\n# Source: %s\n%s\n", h.Path, h.Manifest)
	}
	first := min(len(crds)+len(plain), len(theirs))
	same(r.t, "crds and objects", slices.Concat(crds, plain), theirs[:first])
	theirHooks := theirs[first:]
	same(r.t, "hooks", sorted(objectsOf(r.t, hooks.String())), sorted(theirHooks))
	r.t.Logf("%d objects, %d hooks, %d crds, %d bytes; warnings: %v", len(plain), len(theirHooks), len(crds), len(ours.Manifest), ours.Warnings)
	if len(plain) < least[0] || len(theirHooks) < least[1] || len(crds) < least[2] {
		r.t.Errorf("compared %d objects, %d hooks, %d crds: fewer than %v", len(plain), len(theirHooks), len(crds), least)
	}
}

// defaultAPIs are those that helm template knows without a cluster, which a chart tells.
func defaultAPIs(r *rig) string {
	_, file := pack(r.t, map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: web\nversion: 1.2.3\n",
		"templates/apis.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apis}\ndata: {apis: {{ join \" \" .Capabilities.APIVersions | quote }}}\n",
	})
	apis, _ := objectsOf(r.t, r.helm("template", "apis", file))[0].Object["data"].(map[string]any)
	text, _ := apis["apis"].(string)
	return text
}

type object struct {
	Source string
	Object map[string]any
}

func objectsOf(t *testing.T, manifest string) []object {
	t.Helper()
	out := []object{}
	objects, err := helm.Objects(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		out = append(out, object{o.Source, o.Object})
	}
	return out
}

func sorted(objects []object) []object {
	slices.SortFunc(objects, func(a, b object) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return objects
}
