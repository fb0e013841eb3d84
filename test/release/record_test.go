//go:build cluster

package release

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/helm"
)

var web = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.2.3\nappVersion: \"7\"\n",
	"values.yaml": "replicaCount: 1\ngreeting: hello\n",
	"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: web, image: nginx}]}
`,
	"templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-settings}\ndata: {greeting: {{ .Values.greeting }}}\n",
	"templates/NOTES.txt":     "Thank you for {{ .Values.greeting }}.\n",
	"templates/job.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: before, annotations: {helm.sh/hook: pre-upgrade}}\n",
}

func TestHelmReadsRecords(t *testing.T) {
	r := newRig(t)
	archive, _ := pack(t, web)
	rendered := r.render(helm.Request{Chart: archive, Release: "blue", Values: []string{"greeting: hi\n"}, Overrides: map[string]any{"replicaCount": 2}})
	r.install("blue", rendered, 1)

	var list []map[string]any
	if err := json.Unmarshal([]byte(r.helm("list", "-o", "json")), &list); err != nil || len(list) != 1 {
		t.Fatalf("helm list: %v, %v", list, err)
	}
	for key, want := range map[string]any{"name": "blue", "namespace": r.namespace, "revision": "1", "status": "deployed", "chart": "web-1.2.3", "app_version": "7"} {
		same(t, "helm list: "+key, list[0][key], want)
	}
	same(t, "helm history", r.history("blue"), []string{"1 deployed web-1.2.3: applied by tapp"})
	same(t, "helm get values", r.helm("get", "values", "blue", "-o", "json"), "{\"greeting\":\"hi\",\"replicaCount\":2}\n")
	same(t, "helm get manifest", strings.TrimSpace(r.helm("get", "manifest", "blue")), strings.TrimSpace(rendered.Manifest))
	same(t, "helm get notes", strings.TrimSpace(r.helm("get", "notes", "blue")), "NOTES:\nThank you for hi.")
	if hooks := r.helm("get", "hooks", "blue"); !strings.Contains(hooks, "helm.sh/hook: pre-upgrade") {
		t.Errorf("helm get hooks: %s", hooks)
	}
	if all := r.helm("get", "values", "--all", "blue", "-o", "json"); !strings.Contains(all, `"replicaCount":2`) {
		t.Errorf("helm get values --all: %s", all)
	}
	if status := r.helm("status", "blue"); !strings.Contains(status, "STATUS: deployed") || !strings.Contains(status, "REVISION: 1") {
		t.Errorf("helm status: %s", status)
	}
}

// TestHelmUpgradesAndRollsBack: helm goes on from a record, and what it records is read.
// Here another field manager than helm's applied the objects, so that helm changes them
// only by force; the controller applies them as helm.
func TestHelmUpgradesAndRollsBack(t *testing.T) {
	r := newRig(t)
	archive, file := pack(t, web)
	r.install("blue", r.render(helm.Request{Chart: archive, Release: "blue"}), 1)
	r.install("blue", r.render(helm.Request{Chart: archive, Release: "blue", Revision: 2, Values: []string{"greeting: hi\n"}}), 2)
	same(t, "two of ours", r.history("blue"), []string{"1 superseded web-1.2.3: applied by tapp", "2 deployed web-1.2.3: applied by tapp"})

	out, err := r.tryHelm("upgrade", "blue", file, "--set", "greeting=hey")
	if err == nil || !strings.Contains(out, `conflict with "tapp"`) {
		t.Errorf("helm upgrade without force: %v\n%s", err, out)
	}
	same(t, "what failed is recorded", r.record("blue", 3).Info.Status, helm.StatusFailed)

	r.helm("upgrade", "blue", file, "--set", "greeting=hey", "--force-conflicts")
	upgraded := r.record("blue", 4)
	same(t, "helm's record", []any{upgraded.Info.Status, upgraded.ApplyMethod, upgraded.ChartInfo().String(), string(upgraded.Config), upgraded.Info.FirstDeployed.IsZero()},
		[]any{helm.StatusDeployed, helm.ApplyServerSide, "web-1.2.3", `{"greeting":"hey"}`, false})
	same(t, "ours was superseded", r.record("blue", 2).Info.Status, helm.StatusSuperseded)
	objects, err := helm.Objects(upgraded.Manifest)
	if err != nil || len(objects) != 2 {
		t.Fatalf("helm's manifest: %d objects, %v", len(objects), err)
	}

	r.helm("rollback", "blue", "1", "--force-conflicts")
	back := r.record("blue", 5)
	same(t, "helm's rollback to ours", []any{back.Info.Status, back.Info.Description, back.Manifest == r.record("blue", 1).Manifest}, []any{helm.StatusDeployed, "Rollback to 1", true})
	settings, err := r.Kube.CoreV1().ConfigMaps(r.namespace).Get(t.Context(), "blue-settings", metav1.GetOptions{})
	if err != nil || settings.Data["greeting"] != "hello" {
		t.Errorf("after the rollback: %v, %v", settings.Data, err)
	}
	// And tapp goes on from there.
	r.install("blue", r.render(helm.Request{Chart: archive, Release: "blue", Revision: 6}), 6)
	same(t, "helm's last was superseded", r.record("blue", 5).Info.Status, helm.StatusSuperseded)
}

func TestHelmUninstalls(t *testing.T) {
	r := newRig(t)
	archive, _ := pack(t, web)
	r.install("blue", r.render(helm.Request{Chart: archive, Release: "blue"}), 1)
	r.install("blue", r.render(helm.Request{Chart: archive, Release: "blue", Revision: 2, Values: []string{"greeting: hi\n"}}), 2)
	if left := r.left(); len(left) < 4 {
		t.Fatalf("installed: %v", left)
	}
	r.helm("uninstall", "blue", "--wait")
	deadline := time.Now().Add(time.Minute)
	left := r.left()
	for len(left) > 0 && time.Now().Before(deadline) {
		left = r.left()
	}
	same(t, "left", left, []string(nil))
}

// TestHelmGoesOnFromPending: what tapp left underway is refused by helm, in its words.
func TestHelmGoesOnFromPending(t *testing.T) {
	r := newRig(t)
	archive, file := pack(t, web)
	r.store(helm.NewRecord(r.render(helm.Request{Chart: archive, Release: "blue"}), r.namespace, "blue", 1, time.Now()))
	same(t, "helm history", r.history("blue"), []string{"1 pending-install web-1.2.3: "})
	if out, err := r.tryHelm("upgrade", "blue", file); err == nil || !strings.Contains(out, "another operation (install/upgrade/rollback) is in progress") {
		t.Errorf("helm upgrade: %v\n%s", err, out)
	}
}

// TestLargeRecords: helm reads a record of nearly 1 MiB. One that is larger is refused
// with words; helm's own is refused by the API server.
func TestLargeRecords(t *testing.T) {
	r := newRig(t)
	random := func(size int) map[string]string {
		files := map[string]string{"files/noise": noise(size)}
		for name, text := range web {
			files[name] = text
		}
		return files
	}
	archive, _ := pack(t, random(730<<10))
	record := r.install("large", r.render(helm.Request{Chart: archive, Release: "large"}), 1)
	secret, err := record.Secret(time.Now())
	if err != nil || len(secret.Data["release"]) < 1_000_000 {
		t.Fatalf("the record has %d bytes, %v", len(secret.Data["release"]), err)
	}
	same(t, "helm history", r.history("large"), []string{"1 deployed web-1.2.3: applied by tapp"})

	archive, file := pack(t, random(800<<10))
	_, err = helm.NewRecord(r.render(helm.Request{Chart: archive, Release: "larger"}), r.namespace, "larger", 1, time.Now()).Secret(time.Now())
	if err == nil || !strings.HasPrefix(err.Error(), "chart web-1.2.3: its record has ") ||
		!strings.HasSuffix(err.Error(), " bytes, and a Secret holds 1048576: keep files out of the chart with .helmignore, or make values and manifests smaller") {
		t.Errorf("too large: %v", err)
	}
	if out, err := r.tryHelm("install", "larger", file); err == nil || !strings.Contains(out, "Too long") {
		t.Errorf("helm install of the same chart: %v\n%s", err, out)
	}
}
