//go:build cluster

package release

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/test/cluster"
)

// podSet applies an AdvDeployment with one podSet of a chart.
func (r *rig) podSet(chart, values string) {
	r.t.Helper()
	r.kubectlWith(fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AdvDeployment
metadata: {name: app}
spec:
  podSpec: {deployType: helm, chart: %s, rawValues: %q}
  topology: {podSets: [{name: web, replicas: 1}]}`, chart, values), "apply", "--server-side", "--filename", "-")
}

func raw(archive []byte) string {
	return "{rawChart: " + base64.StdEncoding.EncodeToString(archive) + "}"
}

// says waits for phase, reason and message of the AdvDeployment, of its present spec.
func (r *rig) says(want string) {
	r.t.Helper()
	cluster.Eventually(r.t, "the AdvDeployment says "+want, func(context.Context) error {
		got := r.kubectl("get", "advdeployment", "app", `--output=jsonpath={.metadata.generation}={.status.observedGeneration} {.status.aggrStatus.status} {.status.conditions[?(@.type=="Stalled")].reason}: {.status.conditions[?(@.type=="Stalled")].message}`)
		generations, rest, _ := strings.Cut(got, " ")
		now, seen, _ := strings.Cut(generations, "=")
		return cluster.When(now != seen || !strings.Contains(rest, want), got)
	})
}

const well = "Running Synced: nothing is in the way"

func with(files map[string]string) map[string]string {
	out := maps.Clone(web)
	delete(out, "templates/job.yaml")
	maps.Copy(out, files)
	return out
}

// job is a hook that ends as the simulated kubelet is told.
func job(name, events, end string, weight int, policy string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, annotations: {helm.sh/hook: "%s", helm.sh/hook-weight: "%d", helm.sh/hook-delete-policy: "%s"}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {sim.tkestack.io/finish: %s}}
    spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: job, image: busybox}]}
`, name, events, weight, policy, end)
}

// TestJobHooks: Jobs run one after the other, by weight and not by name, and are deleted
// as their policies say. One that fails leaves what was deployed, and is no deployment.
func TestJobHooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.control()
	files := with(map[string]string{
		"templates/a.yaml":    job("a-second", "pre-install,pre-upgrade", "Succeeded", 5, "before-hook-creation"),
		"templates/b.yaml":    job("b-first", "pre-install,pre-upgrade", "Succeeded", -5, "hook-succeeded"),
		"templates/c.yaml":    job("c-after", "post-install", "Succeeded", 0, "hook-succeeded,hook-failed"),
		"templates/d.yaml":    "{{ if eq .Values.greeting \"bad\" }}\n" + job("d-fails", "pre-upgrade", "Failed", 9, "hook-failed") + "{{ end }}\n",
		"templates/gone.yaml": job("e-gone", "pre-delete", "Succeeded", 0, "hook-succeeded"),
	})
	archive, _ := pack(t, files)
	r.podSet(raw(archive), "greeting: hello")
	r.says(well)
	runs := map[string]helm.HookRun{}
	for _, h := range r.record("web", 1).Hooks {
		runs[h.Name] = h.LastRun
	}
	for _, pair := range [][2]string{{"b-first", "a-second"}, {"a-second", "c-after"}} {
		first, then := runs[pair[0]], runs[pair[1]]
		if first.Phase != helm.HookPhaseSucceeded || then.Phase != helm.HookPhaseSucceeded || first.CompletedAt.IsZero() || then.StartedAt.Before(first.CompletedAt) {
			t.Errorf("%s ran %+v, and %s %+v", pair[0], first, pair[1], then)
		}
	}
	same(t, "Jobs", r.kubectl("get", "jobs", "--output=name"), "job.batch/a-second")

	r.podSet(raw(archive), "greeting: bad")
	r.says(`HookFailed: release "web": hook pre-upgrade Job "d-fails" failed: the Job failed: `)
	same(t, "history", r.history("web"), []string{"1 deployed web-1.2.3: Install complete", "2 failed web-1.2.3: " + r.record("web", 2).Info.Description})
	same(t, "the object", r.kubectl("get", "configmap", "web-settings", "--output=jsonpath={.data.greeting}"), "hello")
	cluster.Eventually(t, "the failed Job goes", func(context.Context) error {
		got := r.kubectl("get", "jobs", "--output=name")
		return cluster.When(got != "job.batch/a-second", got)
	})

	r.podSet(raw(archive), "greeting: good")
	r.says(well)
	same(t, "history", r.history("web")[2], "3 deployed web-1.2.3: Upgrade complete")
	same(t, "the object", r.kubectl("get", "configmap", "web-settings", "--output=jsonpath={.data.greeting}"), "good")
	r.kubectl("delete", "advdeployment", "app", "--timeout=5m")
	same(t, "left", r.kubectl("get", "deployments,jobs,configmaps,secrets", "--field-selector=metadata.name!=kube-root-ca.crt", "--output=name"), "job.batch/a-second")
}

// TestForeignObjects: what somebody else has is not touched, until it is given.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.control()
	archive, file := pack(t, with(nil))
	r.kubectl("create", "configmap", "web-settings", "--from-literal=greeting=mine")
	r.podSet(raw(archive), "")
	r.says(`ErrResourceExists: release "web": ConfigMap "web-settings" already exists, and no release has it. Delete or rename it, or give it to the release: label it app.kubernetes.io/managed-by=Helm, ` +
		"and annotate it meta.helm.sh/release-name=web and meta.helm.sh/release-namespace=" + r.namespace)
	same(t, "releases", r.helm("list", "--short"), "")
	same(t, "what is there", r.left(), []string{"advdeployment.workload.dmall.com/app", "configmap/web-settings"})
	r.kubectl("label", "configmap", "web-settings", "app.kubernetes.io/managed-by=Helm")
	r.kubectl("annotate", "configmap", "web-settings", "meta.helm.sh/release-name=web", "meta.helm.sh/release-namespace="+r.namespace)
	r.says(well)
	same(t, "the object", r.kubectl("get", "configmap", "web-settings", "--output=jsonpath={.data.greeting}"), "hello")
	r.kubectl("delete", "advdeployment", "app", "--timeout=5m")
	same(t, "left", r.left(), []string(nil))

	// A release that helm made.
	r.helm("install", "web", file, "--set", "greeting=helm")
	r.podSet(raw(archive), "")
	r.says(`ErrResourceExists: release "web": Resource "web" already exists and is not managed by AdvDeployment: version 1 of the release is there, and helm made it by hand, or another controller. ` +
		"Uninstall it, or take it over: annotate the AdvDeployment with workload.dmall.com/adopt-releases=web")
	same(t, "the object", r.kubectl("get", "configmap", "web-settings", "--output=jsonpath={.data.greeting}"), "helm")
	r.kubectl("annotate", "advdeployment", "app", "workload.dmall.com/adopt-releases=web")
	r.says(well)
	same(t, "history", r.history("web"), []string{"1 superseded web-1.2.3: Install complete", "2 deployed web-1.2.3: Upgrade complete"})
	same(t, "the object", r.kubectl("get", "configmap", "web-settings", "--output=jsonpath={.data.greeting}"), "hello")
}

// TestHelmGoesOn: helm reads what a podSet became, and goes on from it: what it does by
// hand is told, and taken over, or put right.
func TestHelmGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.control()
	archive, file := pack(t, with(nil))
	r.podSet(raw(archive), "greeting: one")
	r.says(well)
	if list := r.helm("list"); !strings.Contains(list, "web-1.2.3") || !strings.Contains(list, "deployed") {
		t.Errorf("helm list: %s", list)
	}
	same(t, "helm get values", r.helm("get", "values", "web", "-o", "json"), "{\"greeting\":\"one\",\"replicaCount\":1}\n")
	if manifest := r.helm("get", "manifest", "web"); !strings.Contains(manifest, "# Source: web/templates/settings.yaml") || !strings.Contains(manifest, "greeting: one") {
		t.Errorf("helm get manifest: %s", manifest)
	}
	if status := r.helm("status", "web"); !strings.Contains(status, "STATUS: deployed") || !strings.Contains(status, "REVISION: 1") {
		t.Errorf("helm status: %s", status)
	}
	same(t, "helm history", r.history("web"), []string{"1 deployed web-1.2.3: Install complete"})

	greeting := func(want string) {
		t.Helper()
		same(t, "the object", r.kubectl("get", "configmap", "web-settings", "--output=jsonpath={.data.greeting}"), want)
	}
	r.helm("upgrade", "web", file, "--set", "greeting=two")
	greeting("two")
	r.kubectl("annotate", "advdeployment", "app", "a=b") // it is looked at
	r.says(`ErrResourceExists: release "web": Resource "web" already exists and is not managed by AdvDeployment: version 2 of the release is there, `)
	r.helm("rollback", "web", "1")
	greeting("one")
	same(t, "helm history", r.history("web")[2], "3 deployed web-1.2.3: Rollback to 1")
	r.kubectl("annotate", "advdeployment", "app", "workload.dmall.com/adopt-releases=web")
	r.says(well)
	same(t, "helm history", r.history("web")[3], "4 deployed web-1.2.3: Upgrade complete")
	greeting("one")

	r.helm("uninstall", "web", "--wait")
	r.kubectl("annotate", "advdeployment", "app", "a=c", "--overwrite")
	cluster.Eventually(t, "it is installed again", func(context.Context) error {
		out, err := r.tryHelm("status", "web")
		return cluster.When(err != nil || !strings.Contains(out, "STATUS: deployed"), out)
	})
	r.says(well)
	greeting("one")
	r.kubectl("delete", "advdeployment", "app", "--timeout=5m")
	same(t, "left", r.left(), []string(nil))
}

// repository serves charts by https, as `helm repo index` lists them, and gives the
// repositories file that names it `stable`.
func repository(t *testing.T, archive []byte) (*httptest.Server, string) {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/web-1.2.3.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	mux.HandleFunc("/v2/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "apiVersion: v1\nentries:\n  web:\n  - {apiVersion: v2, name: web, version: 1.2.3, digest: %x, urls: [web-1.2.3.tgz]}\n"+
			"  liar:\n  - {apiVersion: v2, name: liar, version: 1.2.3, digest: %x, urls: [web-1.2.3.tgz]}\n", sha256.Sum256(archive), sha256.Sum256(nil))
	})
	folder := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(folder, "repositories.yaml")
	for name, text := range map[string]string{filepath.Join(folder, "ca.crt"): string(ca), file: "apiVersion: v1\nrepositories:\n- {name: stable, url: \"" + server.URL + "\", caFile: ca.crt}\n- {name: registry, url: \"oci" + strings.TrimPrefix(server.URL, "https") + "\", caFile: ca.crt}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return server, file
}

// TestRepository: a worker alone fetches its chart, by alias and by URL. When the
// repository is gone, what runs is kept as it is, and goes without it.
func TestRepository(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	archive, _ := pack(t, with(map[string]string{"templates/lookup.yaml": `# {{ lookup "v1" "Secret" "" "" }}`}))
	server, file := repository(t, archive)
	r.control("--chart-repositories", file, "--allow-private-charts")
	r.podSet("{chartUrl: {url: stable/web, chartVersion: 1.x}}", "")
	r.says(well)
	cluster.Eventually(t, "what is not done is told", func(context.Context) error {
		got := r.kubectl("get", "events", "--field-selector=reason=NotDone", "--output=jsonpath={.items[*].message}")
		return cluster.When(got != `release "web": a template calls lookup, which finds nothing here: charts are rendered without access to the cluster`, got)
	})
	r.podSet("{chartUrl: {url: "+server.URL+"/web-1.2.3.tgz}}", "greeting: by URL")
	r.says(well)
	same(t, "history", r.history("web"), []string{"1 superseded web-1.2.3: Install complete", "2 deployed web-1.2.3: Upgrade complete"})

	server.Close()
	r.podSet("{chartUrl: {url: stable/web}}", "greeting: never")
	r.says("ChartError: release \"web\": chart stable/web: ")
	r.kubectl("delete", "deployment", "web")
	cluster.Eventually(t, "what is deleted comes back from the record", func(context.Context) error {
		got := r.kubectl("get", "deployments", "--output=name")
		return cluster.When(got != "deployment.apps/web", got)
	})
	same(t, "the object", r.kubectl("get", "configmap", "web-settings", "--output=jsonpath={.data.greeting}"), "by URL")
	r.kubectl("delete", "advdeployment", "app", "--timeout=5m")
	same(t, "left", r.left(), []string(nil))
}

// TestBadPodSets: what is wrong with a chart is told whole, with chart, file and line; no
// record and no object is left of it. Without any chart the API server refuses it.
func TestBadPodSets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	archive, _ := pack(t, with(nil))
	server, file := repository(t, archive)
	r.control("--chart-repositories", file, "--allow-private-charts")
	chartOf := func(files map[string]string) string {
		archive, _ := pack(t, with(files))
		return raw(archive)
	}
	host := strings.TrimPrefix(server.URL, "https://")
	schema := `{"type": "object", "properties": {"greeting": {"type": "string"}}}`
	cases := []struct{ name, chart, values, want string }{
		{"loops", chartOf(map[string]string{"templates/loop.yaml": "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"}), "",
			"chart web-1.2.3: web/templates/loop.yaml: rendering did not end within 10s"},
		{"needs 2 GB", chartOf(map[string]string{"templates/eat.yaml": `# {{ repeat 2000000000 "x" | len }}`}), "",
			"chart web-1.2.3: web/templates/eat.yaml: rendering needs more than 512 MiB of memory"},
		{"values that the schema refuses", chartOf(map[string]string{"values.schema.json": schema}), "greeting: 1",
			`chart web-1.2.3: values don't meet the specifications of the schema(s) in the following chart(s):` + "\nweb:\n" + `- at '/greeting': got number, want string`},
		{"climbing paths", chartOf(map[string]string{"../../etc/passwd": "x"}), "", "chart: reading the archive: chart illegally references parent directory"},
		{"a template error", chartOf(map[string]string{"templates/settings.yaml": "a: b\nc: {{ .Values.a.b.c }}\n"}), "",
			`chart web-1.2.3: web/templates/settings.yaml:2:13` + "\n  executing" + ` "web/templates/settings.yaml" at <.Values.a.b.c>:` + "\n    " + `nil pointer evaluating interface {}.b`},
		{"an index that lies", "{chartUrl: {url: stable/liar}}", "",
			fmt.Sprintf("chart stable/liar: the archive has the digest sha256:%x, and the index of the repository says sha256:%x", sha256.Sum256(archive), sha256.Sum256(nil))},
		{"403", "{chartUrl: {url: oci://" + host + "/denied/web, chartVersion: 1.0.0}}", "",
			"chart oci://" + host + "/denied/web 1.0.0: HEAD https://" + host + "/v2/denied/web/manifests/1.0.0: the server says 403 Forbidden"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := &rig{Cluster: r.Cluster, t: t, namespace: r.namespace}
			r.podSet(c.chart, c.values)
			r.says(`ChartError: release "web": ` + c.want)
			same(t, "releases", r.helm("list", "--short"), "")
			same(t, "left", r.left(), []string{"advdeployment.workload.dmall.com/app"})
			r.kubectl("delete", "advdeployment", "app", "--timeout=5m")
		})
	}
	without := "apiVersion: workload.dmall.com/v1beta1\nkind: AdvDeployment\nmetadata: {name: app}\nspec: {podSpec: {deployType: helm, chart: {}}, topology: {podSets: [{name: web, replicas: 1}]}}\n"
	out, err := r.Command(t.Context(), without, "kubectl", "apply", "--server-side", "--namespace", r.namespace, "--filename", "-")
	if err == nil || !strings.Contains(out, "spec.podSpec.chart: Invalid value: give rawChart or chartUrl") {
		t.Errorf("without a chart: %v: %s", err, out)
	}
}
