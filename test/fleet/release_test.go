//go:build cluster

package fleet

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tkestack.io/tapp/test/gen"
)

// chart is an archive of a chart, as `helm package` makes it.
func chart(t *testing.T, files map[string]string) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(gen.Archive(t, gen.Below("web", files)))
}

// web is a chart as many are: a Deployment with a Service, a configuration, and hooks.
func web() map[string]string {
	return map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: \"1.25\"\n",
		"values.yaml": "replicaCount: 1\nimage: {repository: nginx, tag: \"\"}\nword: hello\nextra: true\nhook: true\n",
		"templates/deployment.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app.kubernetes.io/instance: {{ .Release.Name }}}}
  template:
    metadata:
      labels: {app.kubernetes.io/instance: {{ .Release.Name }}}
      annotations: {checksum/config: {{ .Values.word | sha256sum | quote }}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        ports: [{name: http, containerPort: 80}]
        resources: {requests: {cpu: 1000m, memory: 1024Mi}}
`,
		"templates/service.yaml": `
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app.kubernetes.io/instance: {{ .Release.Name }}}, ports: [{name: http, port: 80, targetPort: http}]}
`,
		"templates/config.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-config}
data: {word: {{ .Values.word | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-secret}
stringData: {word: {{ .Values.word | quote }}}
{{- if .Values.extra }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-extra}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-kept, annotations: {helm.sh/resource-policy: keep}}
{{- end }}
`,
		"templates/hook.yaml": `
{{- if .Values.hook }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-5", helm.sh/hook-delete-policy: "before-hook-creation"}
data: {revision: {{ .Release.Revision | quote }}}
{{- end }}
`,
		"templates/NOTES.txt": "{{ .Release.Name }} says {{ .Values.word }}.\n",
	}
}

// release is an AdvDeployment with one podSet, of a chart.
func release(name, archive, podSet, values string) string {
	indented := strings.ReplaceAll(strings.TrimSpace(values), "\n", "\n      ")
	return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AdvDeployment
metadata: {name: %s}
spec:
  podSpec:
    deployType: helm
    chart: {rawChart: %s}
    rawValues: |
      %s
  topology: {podSets: [%s]}`, name, archive, indented, podSet)
}

// allow gives the ServiceAccount by whose rights charts are applied the rights of an
// admin in the test's namespace.
func (r *rig) allow(s *site) {
	r.on(s).Kubectl("create", "rolebinding", "tapp-release", "--clusterrole=admin", "--serviceaccount="+r.ns+":tapp-release")
}

// helm is the real program.
func (r *rig) helm(s *site, args ...string) string {
	r.Helper()
	out, err := s.Command(r.Context(), "", "helm", append(args, "--namespace", r.ns)...)
	if err != nil {
		r.Fatalf("helm %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// TestRelease: a podSet is a release: installed, looked at by helm, upgraded, put right,
// scaled, and uninstalled without a trace.
func TestRelease(t *testing.T) {
	r, m := newMember(t)
	in := r.on(m)
	archive := chart(t, web())
	in.KubectlWith(release("app", archive, "{name: web, replicas: 2, version: v1}", "word: one"), "apply", "--filename", "-")
	r.shows(m, "", "get", "deployments,configmaps,services", "--output=name", "--selector=app.kubernetes.io/managed-by=Helm")
	r.shows(m, "Refused", "get", "ad", "app", `--output=jsonpath={.status.conditions[?(@.type=="Stalled")].reason}`)
	r.allow(m)
	r.shows(m, "Running 2 2 v1", "get", "ad", "app", columns)
	r.shows(m, "nginx:v1 2 one 1", "get", "deployment/web", "configmap/web-config", "configmap/web-hook",
		"--output=jsonpath={.items[0].spec.template.spec.containers[0].image} {.items[0].spec.replicas} {.items[1].data.word} {.items[2].data.revision}")

	type listed struct{ Name, Revision, Status, Chart, AppVersion string }
	var list []listed
	if err := json.Unmarshal([]byte(r.helm(m, "list", "--output", "json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Name != "web" || list[0].Revision != "1" || list[0].Status != "deployed" || list[0].Chart != "web-1.0.0" {
		t.Errorf("helm lists %+v", list)
	}
	if got := r.helm(m, "get", "values", "web"); !strings.Contains(got, "word: one") || !strings.Contains(got, "replicaCount: 2") || !strings.Contains(got, "tag: v1") {
		t.Errorf("helm says of its values:\n%s", got)
	}
	if got := r.helm(m, "get", "notes", "web"); !strings.Contains(got, "web says one.") {
		t.Errorf("helm says of its notes:\n%s", got)
	}

	// Drift of what a watch tells of, and of what none does, when it is looked at anyway.
	in.Kubectl("delete", "configmap", "web-config")
	in.Kubectl("scale", "deployment", "web", "--replicas=5")
	in.Kubectl("set", "image", "deployment/web", "web=nginx:other")
	r.shows(m, "nginx:v1 2", "get", "deployment/web", "--output=jsonpath={.spec.template.spec.containers[0].image} {.spec.replicas}")

	in.KubectlWith(release("app", archive, "{name: web, replicas: 3, version: v2}", "word: two\nextra: false"), "apply", "--filename", "-")
	r.shows(m, "Running 3 3 v2", "get", "ad", "app", columns)
	r.shows(m, "nginx:v2 3 two 2", "get", "deployment/web", "configmap/web-config", "configmap/web-hook",
		"--output=jsonpath={.items[0].spec.template.spec.containers[0].image} {.items[0].spec.replicas} {.items[1].data.word} {.items[2].data.revision}")
	r.shows(m, "configmap/web-config\nconfigmap/web-kept", "get", "configmaps", "--output=name", "--selector=app.kubernetes.io/managed-by=Helm")
	var history []struct {
		Revision            int
		Status, Description string
	}
	if err := json.Unmarshal([]byte(r.helm(m, "history", "web", "--output", "json")), &history); err != nil {
		t.Fatal(err)
	}
	if len(history) != 2 || history[0].Status != "superseded" || history[1].Status != "deployed" || history[1].Description != "Upgrade complete" {
		t.Errorf("helm says of its history %+v", history)
	}

	log := in.FollowAudit()
	r.rests(m, log)

	// A deletion leaves the release where that is asked for, and another AdvDeployment takes it over.
	const uids = "--output=jsonpath={.items[*].metadata.uid}"
	before := in.Kubectl("get", "pods", uids)
	in.Kubectl("annotate", "ad", "app", "workload.dmall.com/keep-releases=true")
	in.Kubectl("delete", "ad", "app", "--cascade=orphan", "--timeout=5m")
	if got := r.helm(m, "list", "--short"); strings.TrimSpace(got) != "web" {
		t.Errorf("helm lists %q", got)
	}
	in.KubectlWith(strings.Replace(release("app", archive, "{name: web, replicas: 3, version: v2}", "word: two\nextra: false"),
		"{name: app}", "{name: app, annotations: {workload.dmall.com/adopt-releases: web}}", 1), "apply", "--filename", "-")
	r.shows(m, "Running 3 3 v2", "get", "ad", "app", columns)
	if after := in.Kubectl("get", "pods", uids); after != before {
		t.Errorf("the pods were %s and are %s", before, after)
	}
	in.Kubectl("delete", "ad", "app", "--timeout=5m")
	r.shows(m, "configmap/web-hook\nconfigmap/web-kept", "get", "deployments,services,replicasets,pods,configmaps,secrets", "--output=name", "--field-selector=metadata.name!=kube-root-ca.crt")
}

// fleetRelease is an AppSet of a chart, in these clusters.
func fleetRelease(archive, values string, clusters ...string) string {
	out := fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: shop}
spec:
  podSpec:
    deployType: helm
    chart: {rawChart: %s}
    rawValues: "%s"
  clusterTopology:
    clusters:`, archive, values)
	for _, c := range clusters {
		out += fmt.Sprintf("\n    - {name: %s, podSets: [{name: web, replicas: 2, version: v1}]}", c)
	}
	return out
}

// TestReleaseOfFleet: the hub stores a chart once, and each member gets the same bytes
// before its part, which has none of them.
func TestReleaseOfFleet(t *testing.T) {
	r := newRig(t)
	archive := chart(t, web())
	members := r.members[:2]
	for _, m := range members {
		r.allow(m)
	}
	hub := r.on(r.hub)
	hub.KubectlWith(fleetRelease(archive, "word: one", "member1", "member2"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 4 4 v1", "get", "as", "shop", columns)
	name := ""
	for _, m := range members {
		in := r.on(m)
		is := strings.TrimSpace(in.Kubectl("get", "ad", "shop", "--output=jsonpath={.spec.topology.podSets[0].chart.secretRef.name} {.spec.podSpec.chart}"))
		if name == "" {
			name = is
		}
		if is != name || !strings.HasPrefix(is, "tapp-chart-") {
			t.Errorf("%s: the chart is in %q, and in %q elsewhere", m.name, is, name)
		}
		if got := in.Kubectl("get", "secret", name, "--namespace=tapp-charts", "--output=jsonpath={.data.chart\\.tgz}"); got != archive {
			t.Errorf("%s has other bytes", m.name)
		}
		r.shows(m, "one", "get", "configmap", "web-config", "--output=jsonpath={.data.word}")
	}
	// The accounts may note that an archive is used, and drop those that nothing uses, which
	// is done after an hour.
	for _, may := range []struct {
		in      *site
		account string
	}{{r.hub, tapp}, {members[0], "system:serviceaccount:" + releaseSpace + ":tapp-fleet"}} {
		for _, verb := range []string{"list", "patch", "delete"} {
			r.shows(may.in, "yes", "auth", "can-i", verb, "secrets", "--namespace=tapp-charts", "--as="+may.account)
		}
	}
	hub.KubectlWith(fleetRelease(archive, "word: two", "member1", "member2"), "apply", "--filename", "-")
	for _, m := range members {
		r.shows(m, "two", "get", "configmap", "web-config", "--output=jsonpath={.data.word}")
	}
	r.shows(r.hub, "Running 4 4 v1", "get", "as", "shop", columns)
	hub.Kubectl("delete", "as", "shop", "--timeout=5m")
	for _, m := range members {
		r.shows(m, "", "get", "deployments,services,replicasets,pods", "--output=name")
	}
}

// TestReleaseFails: what is wrong with one chart is told with its file and line, nothing
// of it is applied, and other podSets go on.
func TestReleaseFails(t *testing.T) {
	r, m := newMember(t)
	r.allow(m)
	files := web()
	files["templates/bad.yaml"] = "{{ if eq .Release.Name \"bad\" }}\n{{ fail \"no way\" }}\n{{ end }}\n"
	r.on(m).KubectlWith(release("app", chart(t, files), "{name: bad, replicas: 1}, {name: good, replicas: 1, version: v1}", "word: one"), "apply", "--filename", "-")
	r.shows(m, "good", "get", "deployments", "--output=jsonpath={.items[*].metadata.name}")
	r.shows(m, "True ChartError", "get", "ad", "app", stalled)
	if got := r.on(m).Kubectl("get", "ad", "app", `--output=jsonpath={.status.conditions[?(@.type=="Stalled")].message}`); !strings.Contains(got, `release "bad": chart web-1.0.0: execution error at (web/templates/bad.yaml:2`) || !strings.Contains(got, "no way") {
		t.Errorf("it says %s", got)
	}
	if got := r.helm(m, "list", "--short"); strings.TrimSpace(got) != "good" {
		t.Errorf("helm lists %q", got)
	}
	r.on(m).Kubectl("delete", "ad", "app", "--timeout=5m")
}
