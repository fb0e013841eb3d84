package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/plan/view"
)

const (
	tappManifest  = "apiVersion: apps.tkestack.io/v1\nkind: TApp\nmetadata: {name: web}\n"
	otherManifest = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	namespaced    = "apiVersion: apps.tkestack.io/v1\nkind: TApp\nmetadata: {name: api, namespace: other}\n"
)

// TestManifests: which TApps files hold, and into which namespace they go.
func TestManifests(t *testing.T) {
	for _, c := range []struct {
		name     string
		files    map[string]string
		stdin    string
		args     []string
		enforced bool
		want     []string // namespace/name
		left     string
		err      string
	}{
		{"a file", map[string]string{"a.yaml": tappManifest}, "", []string{"a.yaml"}, true, []string{"shop/web"}, "", ""},
		{"the standard input", nil, tappManifest, []string{"-"}, false, []string{"shop/web"}, "", ""},
		{"other kinds", map[string]string{"a.yaml": otherManifest + "---\n" + tappManifest}, "", []string{"a.yaml"}, false,
			[]string{"shop/web"}, "Left out: Service web\n", ""},
		{"a directory", map[string]string{"dir/b.yml": namespaced, "dir/a.yaml": tappManifest, "dir/c.txt": "no", "dir/sub/d.yaml": tappManifest}, "",
			[]string{"dir"}, false, []string{"shop/web", "other/api"}, "", ""},
		{"two files", map[string]string{"a.yaml": tappManifest, "b.yaml": namespaced}, "", []string{"b.yaml", "a.yaml"}, false,
			[]string{"other/api", "shop/web"}, "", ""},
		{"the flag contradicts", map[string]string{"a.yaml": namespaced}, "", []string{"a.yaml"}, true, nil, "",
			`api is in namespace "other" by its manifest, and in "shop" by --namespace`},
		{"no TApp", map[string]string{"a.yaml": otherManifest}, "", []string{"a.yaml"}, false, nil, "Left out: Service web\n", "there is no TApp in the manifest"},
		{"an older group", map[string]string{"a.yaml": strings.Replace(tappManifest, "apps.tkestack.io/v1", "tkestack.io/v1", 1)}, "", []string{"a.yaml"}, false,
			nil, "Left out: TApp web\n", "there is no TApp in the manifest"},
		{"no file", nil, "", []string{"nowhere.yaml"}, false, nil, "", "reading the manifest: open nowhere.yaml: no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for path, text := range c.files {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var errOut bytes.Buffer
			e := &environment{streams: Streams{In: strings.NewReader(c.stdin), ErrOut: &errOut}}
			objects, err := e.manifests(&session{namespace: "shop", enforced: c.enforced}, c.args)
			var got []string
			for _, o := range objects {
				got = append(got, o.GetNamespace()+"/"+o.GetName())
			}
			if !slices.Equal(got, c.want) || text(err) != c.err || errOut.String() != c.left {
				t.Errorf("%q, %v, printed %q", got, err, errOut.String())
			}
		})
	}
}

// TestWithoutState: a manifest that was read from the cluster is as good as a written
// one, and is not changed.
func TestWithoutState(t *testing.T) {
	in := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"a": "b"}, "resourceVersion": "7", "uid": "u", "generation": int64(3),
			"creationTimestamp": nil, "managedFields": []any{}},
		"spec": map[string]any{"replicas": int64(1)}, "status": map[string]any{"replicas": int64(1)},
	}}
	changes, err := view.Changes("", withoutState(in).Object, map[string]any{
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"a": "b"}}, "spec": map[string]any{"replicas": 1}})
	if err != nil || len(changes) > 0 {
		t.Errorf("%v, %v", changes, err)
	}
	if in.GetResourceVersion() != "7" || in.Object["status"] == nil {
		t.Errorf("the input is now %v", in.Object)
	}
}
