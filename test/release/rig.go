//go:build cluster

// Package release tests charts and releases beside the real helm program, on a real
// API server.
package release

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// rig is a namespace, and the programs.
type rig struct {
	*cluster.Cluster
	t         *testing.T
	namespace string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	c, err := cluster.Connect("release-test")
	if err != nil {
		t.Fatal(err)
	}
	space, err := c.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "release-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Kube.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), space.Name, metav1.DeleteOptions{})
	})
	return &rig{Cluster: c, t: t, namespace: space.Name}
}

// helm runs the program in the namespace; it must succeed.
func (r *rig) helm(args ...string) string {
	r.t.Helper()
	out, err := r.tryHelm(args...)
	if err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func (r *rig) tryHelm(args ...string) (string, error) {
	return r.Command(r.t.Context(), "", "helm", append(args, "--namespace", r.namespace)...)
}

// render renders by the child process of the real program.
func (r *rig) render(request helm.Request) *helm.Rendered {
	r.t.Helper()
	if request.Namespace == "" {
		request.Namespace = r.namespace
	}
	out, err := helm.NewRenderer(helm.Limits{Time: time.Minute}, r.Program("tapp"), helm.Command).Render(r.t.Context(), request)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// install applies what was rendered by server-side apply, with helm's marks, as a field
// manager of its own, and records it as deployed. An older revision becomes superseded.
func (r *rig) install(name string, rendered *helm.Rendered, version int) *helm.Record {
	r.t.Helper()
	objects, err := helm.Objects(rendered.Manifest)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, o := range objects {
		labels, annotations := orEmpty(o.GetLabels()), orEmpty(o.GetAnnotations())
		labels["app.kubernetes.io/managed-by"] = "Helm"
		annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = name, r.namespace
		o.SetLabels(labels)
		o.SetAnnotations(annotations)
		raw, err := o.MarshalJSON()
		if err != nil {
			r.t.Fatal(err)
		}
		if out, err := r.Command(r.t.Context(), string(raw), "kubectl", "apply", "--server-side", "--field-manager=tapp", "--namespace", r.namespace, "-f", "-"); err != nil {
			r.t.Fatalf("%v\n%s", err, out)
		}
	}
	record := helm.NewRecord(rendered, r.namespace, name, version, time.Now())
	record.Info.Status, record.Info.Description = helm.StatusDeployed, "applied by tapp"
	r.store(record)
	if version > 1 {
		before := r.record(name, version-1)
		before.Info.Status = helm.StatusSuperseded
		r.store(before)
	}
	return record
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// store creates or updates a record's Secret.
func (r *rig) store(record *helm.Record) {
	r.t.Helper()
	secret, err := record.Secret(time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	secrets := r.Kube.CoreV1().Secrets(r.namespace)
	if _, err := secrets.Get(r.t.Context(), secret.Name, metav1.GetOptions{}); err == nil {
		_, err = secrets.Update(r.t.Context(), secret, metav1.UpdateOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		return
	}
	if _, err := secrets.Create(r.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// record reads one back.
func (r *rig) record(name string, version int) *helm.Record {
	r.t.Helper()
	secret, err := r.Kube.CoreV1().Secrets(r.namespace).Get(r.t.Context(), helm.SecretName(name, version), metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := helm.DecodeRecord(secret)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// left is what is left of a release in the namespace.
func (r *rig) left() (out []string) {
	r.t.Helper()
	text, err := r.Command(r.t.Context(), "", "kubectl", "get", "all,configmaps,secrets", "--namespace", r.namespace, "-o", "name")
	if err != nil {
		r.t.Fatalf("%v\n%s", err, text)
	}
	for line := range strings.Lines(text) {
		if name := strings.TrimSpace(line); name != "configmap/kube-root-ca.crt" && strings.Contains(name, "/") {
			out = append(out, name)
		}
	}
	return out
}

// history is what `helm history` prints: revision, status and description.
func (r *rig) history(name string) (out []string) {
	r.t.Helper()
	var entries []struct {
		Revision    int    `json:"revision"`
		Status      string `json:"status"`
		Chart       string `json:"chart"`
		Description string `json:"description"`
	}
	if err := json.Unmarshal([]byte(r.helm("history", name, "-o", "json")), &entries); err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, fmt.Sprint(e.Revision, " ", e.Status, " ", e.Chart, ": ", e.Description))
	}
	return out
}

// pack writes a chart's archive, and gives it and its file.
func pack(t *testing.T, files map[string]string) ([]byte, string) {
	t.Helper()
	archive := gen.Archive(t, gen.Below("web", files))
	file := filepath.Join(t.TempDir(), "web-1.2.3.tgz")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	return archive, file
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	a, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, a, b)
	}
}
