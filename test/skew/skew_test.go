//go:build cluster

// Package skew tests upgrades of TApp itself: from an older version to this one, and back
// by `helm rollback`, on real nodes. No pod of a TApp or an App may restart, and each
// version goes on with what the other one left.
package skew

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/cluster"
)

const releaseSpace = "tapp-system"

// workloads are of the older version's kinds: a TApp with templates of its own, claims and
// a killed instance; one whose change is held back; one with a checksum, an init container, a version in its labels and a
// soak; one whose instances are completed; and an App.
const workloads = `
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: web}
spec:
  replicas: 4
  template: &template
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: "demo:v1", volumeMounts: [{name: data, mountPath: /data}]}]
  templatePool:
    other:
      metadata: {labels: {app: web, other: "yes"}}
      spec:
        terminationGracePeriodSeconds: 1
        containers: [{name: web, image: "demo:v2", volumeMounts: [{name: data, mountPath: /data}]}]
  templates: {"1": other}
  statuses: {"2": Killed}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: held}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: held}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: held, image: "demo:v1"}]
---
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: marked}
spec:
  replicas: 2
  minReadySeconds: 1
  template:
    metadata: {labels: {app: marked, app.kubernetes.io/version: "1"}, annotations: {checksum/config: one}}
    spec:
      terminationGracePeriodSeconds: 1
      initContainers: [{name: setup, image: "demo:v1", args: [write, /plugins/list, of v1], volumeMounts: &plugins [{name: plugins, mountPath: /plugins}]}]
      containers: [{name: main, image: "demo:v1", volumeMounts: *plugins}]
      volumes: [{name: plugins, emptyDir: {}}]
---
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: ended}
spec:
  replicas: 2
  neverMigrate: true
  template:
    metadata: {labels: {app: ended}}
    spec:
      restartPolicy: OnFailure
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "demo:v1", args: [write, /tmp/done, "yes"]}]
---
apiVersion: appcontroller.k8s.io/v1
kind: App
metadata: {name: shop}
spec:
  deploymentTemplate: {name: shop, image: "demo:v1", replicas: 1}
  serviceTemplate: {name: shop, port: 80}
`

// rig is the test's namespace, and the release in its own.
type rig struct{ *cluster.Rig }

// same fails if pods have gone, come or restarted, those of names aside.
func (r *rig) same(when string, before map[string]string, aside ...string) {
	r.Helper()
	after := r.Starts("")
	for _, name := range aside {
		delete(before, name)
		delete(after, name)
	}
	if !maps.Equal(before, after) {
		r.Errorf("%s: the pods are\n%v\nand were\n%v", when, after, before)
	}
}

func (r *rig) helm(args ...string) {
	r.Helper()
	if out, err := r.Command(r.Context(), "", "helm", append(args, "--namespace", releaseSpace)...); err != nil {
		r.Fatalf("%v\n%s\n%s", err, out, r.Describe(r.Context(), releaseSpace))
	}
	r.KubectlWith("", "--namespace", releaseSpace, "rollout", "status", "deployment/tapp", "--timeout="+cluster.Patience.String())
}

// scaled has the TApp have n instances, one more than before, which shows that the release
// works on it, and returns the name of the new one. Of all, killed are.
func (r *rig) scaled(n, killed int) string {
	r.Helper()
	r.Eventually("a change is admitted", func(context.Context) error {
		out, err := r.TryKubectl("patch", "tapp", "web", "--type=merge", "--patch", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
		return cluster.When(err != nil, out)
	})
	r.ready("web", n-killed)
	return fmt.Sprintf("web-%d", n-1)
}

func (r *rig) ready(name string, n int) {
	r.Helper()
	r.Eventually(fmt.Sprintf("%s has %d ready instances", name, n), func(context.Context) error {
		got := r.Kubectl("get", "tapp", name, "--output=jsonpath={.metadata.generation} {.status.observedGeneration} {.status.readyReplicas}")
		var generation, observed, ready int
		_, err := fmt.Sscan(got, &generation, &observed, &ready)
		return cluster.When(err != nil || generation != observed || ready != n, got)
	})
}

// inPlace changes the image of the default template: pods stay, containers start anew.
func (r *rig) inPlace(image string, instances ...string) {
	r.Helper()
	before := r.Starts("")
	r.Kubectl("patch", "tapp", "web", "--type=json", "--patch", `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "`+image+`"}]`)
	for _, name := range instances {
		r.Eventually(name+" runs "+image, func(context.Context) error {
			got := r.Kubectl("get", "pod", name, "--output=jsonpath={.spec.containers[0].image} {.status.containerStatuses[0].image} {.status.containerStatuses[0].ready}")
			return cluster.When(!strings.HasPrefix(got, image+" ") || !strings.HasSuffix(got, image+" true"), got)
		})
	}
	after := r.Starts("")
	for _, name := range instances {
		was, _, _ := strings.Cut(before[name], ",")
		is, _, _ := strings.Cut(after[name], ",")
		if was != is || before[name] == after[name] {
			r.Errorf("an update in place to %s made %s of %s", image, after[name], before[name])
		}
		delete(before, name)
		delete(after, name)
	}
	if !maps.Equal(before, after) {
		r.Errorf("an update in place to %s made %v of %v", image, after, before)
	}
}

func TestSkew(t *testing.T) {
	r := &rig{cluster.New(t, "skew")}
	oldChart, oldTag, newTag := os.Getenv("TAPP_OLD_CHART"), os.Getenv("TAPP_OLD_TAG"), os.Getenv("TAPP_NEW_TAG")
	if oldChart == "" || oldTag == "" || newTag == "" {
		t.Fatal("TAPP_OLD_CHART, TAPP_OLD_TAG and TAPP_NEW_TAG name no versions: run this test by `make skew-test`")
	}
	if _, err := r.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: releaseSpace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	values := func(tag string) []string {
		return []string{"--set", "image.repository=tapp,controllers.app.enabled=true,tls.mode=selfManaged", "--set-string", "image.tag=" + tag}
	}

	r.helm(append([]string{"install", "tapp", oldChart}, values(oldTag)...)...)
	r.Eventually("admission is answered", func(context.Context) error {
		out, err := r.TryKubectlWith(workloads, "apply", "--filename", "-")
		return cluster.When(err != nil, out)
	})
	r.ready("web", 3)
	r.ready("held", 2)
	r.Eventually("the instances of ended are completed, and have no pods", func(context.Context) error {
		got := r.Kubectl("get", "tapp", "ended", "--output=jsonpath={.status.statuses}") + r.Kubectl("get", "pods", "--selector=app=ended", "--output=name")
		return cluster.When(got != `{"0":"Succ","1":"Succ"}`, got)
	})
	r.inPlace("demo:v3", "web-0", "web-3")
	r.Kubectl("patch", "tapp", "held", "--type=merge", "--patch", `{"spec":{"paused":true}}`)
	r.Kubectl("patch", "tapp", "held", "--type=json", "--patch", `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "demo:v2"}]`)
	r.ready("held", 2)
	// The older version writes both in place: no container starts anew by them, then or later.
	r.ready("marked", 2)
	r.Kubectl("patch", "tapp", "marked", "--type=json", "--patch", `[{"op": "replace", "path": "/spec/template/metadata/annotations/checksum~1config", "value": "two"},
		{"op": "replace", "path": "/spec/template/spec/initContainers/0/image", "value": "demo:v2"}]`)
	for _, name := range []string{"marked-0", "marked-1"} {
		r.Eventually(name+" has what was written", func(context.Context) error {
			got := r.Kubectl("get", "pod", name, "--output=jsonpath={.spec.initContainers[0].image} {.metadata.annotations.checksum/config}")
			return cluster.When(got != "demo:v2 two", got)
		})
	}
	r.ready("marked", 2)
	r.Kubectl("rollout", "status", "deployment/shop", "--timeout="+cluster.Patience.String())

	before := r.Starts("")
	r.helm(append([]string{"upgrade", "tapp", "../../chart"}, values(newTag)...)...)
	r.same("upgraded", before, r.scaled(5, 1))
	r.inPlace("demo:v1", "web-0", "web-3", "web-4")
	r.Kubectl("patch", "tapp", "web", "--type=merge", "--patch", `{"spec":{"statuses":{"2":null}}}`)
	r.ready("web", 5)

	before = r.Starts("")
	r.helm("rollback", "tapp", "1")
	r.Eventually("the older version runs", func(context.Context) error {
		got := r.Kubectl("--namespace", releaseSpace, "get", "deployment", "tapp", "--output=jsonpath={.spec.template.spec.containers[0].image} {.status.updatedReplicas} {.status.readyReplicas}")
		return cluster.When(got != "tapp:"+oldTag+" 2 2", got)
	})
	r.same("rolled back", before, r.scaled(6, 0))
	r.inPlace("demo:v2", "web-0", "web-2", "web-3", "web-4", "web-5")
	r.Kubectl("patch", "tapp", "held", "--type=merge", "--patch", `{"spec":{"paused":false}}`)
	r.ready("held", 2)

	r.Kubectl("delete", "tapp,apps.appcontroller.k8s.io", "--all", "--wait")
}
