package chart

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what is rendered as what is wanted")

// TestGolden: what the chart renders, whole. The CRDs are TestCRDs'.
func TestGolden(t *testing.T) {
	for _, r := range releases {
		t.Run(r.name, func(t *testing.T) {
			files := mustRender(t, r)
			delete(files, crdFile)
			var got strings.Builder
			for _, name := range sortedKeys(files) {
				fmt.Fprintf(&got, "##### %s\n%s\n", name, strings.TrimSpace(files[name]))
			}
			golden := filepath.Join("testdata", "golden", r.name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if line, differs := firstDifference(got.String(), string(want)); differs {
				t.Errorf("not as in %s (go test -update writes it anew), from line %d on\ngot:\n%s", golden, line, got.String())
			}
		})
	}
}

func firstDifference(got, want string) (line int, differs bool) {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return i + 1, true
		}
	}
	return len(g), len(w) > len(g)
}

// TestLint: Helm itself finds nothing but that there is no icon.
func TestLint(t *testing.T) {
	version, err := common.ParseKubeVersion("v1.37.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range releases {
		result := lint.RunAll(chartDir, valuesOf(t, r.name), namespace, lint.WithKubeVersion(version))
		for _, m := range result.Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", r.name, m)
			}
		}
	}
}

// TestFloor: the chart asks for the oldest version of Kubernetes that is tested.
func TestFloor(t *testing.T) {
	files, err := filepath.Glob("../../devcluster/kubernetes/*.mod")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	oldest := 1 << 10
	for _, file := range files {
		var minor int
		if _, err := fmt.Sscanf(filepath.Base(file), "1.%d.mod", &minor); err != nil {
			t.Fatal(err)
		}
		oldest = min(oldest, minor)
	}
	if got, want := load(t).Metadata.KubeVersion, fmt.Sprintf(">=1.%d.0-0", oldest); got != want {
		t.Errorf("kubeVersion is %q, want %q", got, want)
	}
}

// TestCRDs: those of the chart are those of crd/bases, with labels and an annotation
// that keeps them; that of App is there where its controller is.
func TestCRDs(t *testing.T) {
	values := map[string]any{"controllers": map[string]any{"app": map[string]any{"enabled": true}}}
	both, err := render(load(t), values)
	if err != nil {
		t.Fatal(err)
	}
	haveCRDs(t, both[crdFile], "../../crd/bases/app*.yaml")
	haveCRDs(t, mustRender(t, releases[0])[crdFile], "../../crd/bases/*_tapps.yaml")
}

func haveCRDs(t *testing.T, rendered, pattern string) {
	t.Helper()
	bases, err := filepath.Glob(pattern)
	if err != nil || len(bases) == 0 {
		t.Fatalf("%d CRDs in crd/bases, %v", len(bases), err)
	}
	documents := strings.Split("\n"+rendered, "\n---\n")[1:]
	if len(documents) != len(bases) {
		t.Fatalf("%d CRDs are rendered, want %d", len(documents), len(bases))
	}
	for i, path := range bases {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copied, err := os.ReadFile(filepath.Join(chartDir, "files", "crds", filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(raw, copied) {
			t.Errorf("chart/files/crds is not what crd/bases is: run make generate")
		}
		want, got := tree(t, raw), tree(t, []byte(documents[i]))
		metadata := want["metadata"].(map[string]any)
		metadata["annotations"].(map[string]any)["helm.sh/resource-policy"] = "keep"
		metadata["labels"] = map[string]any{
			"helm.sh/chart": "tapp-" + load(t).Metadata.Version, "app.kubernetes.io/name": "tapp", "app.kubernetes.io/instance": "tapp",
			"app.kubernetes.io/version": load(t).Metadata.AppVersion, "app.kubernetes.io/managed-by": "Helm",
		}
		if g, w := text(t, got), text(t, want); g != w {
			line, _ := firstDifference(g, w)
			t.Errorf("%s is rendered as something else, from line %d on", path, line)
		}
	}
}

func tree(t *testing.T, data []byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t *testing.T, object map[string]any) string {
	t.Helper()
	out, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
