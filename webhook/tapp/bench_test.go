package tapp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/process"
)

// poolOf is a spec with so many templates beside the default one, each as large as
// those of real applications, and an instance of its own for each.
func poolOf(templates int, image string) string {
	var pool, uses strings.Builder
	for i := range templates {
		fmt.Fprintf(&uses, "'%d': t%d, ", i, i)
		fmt.Fprintf(&pool, "  t%d:\n    metadata: {labels: {app: web, tier: t%d}, annotations: {team: shop}}\n    spec:\n", i, i)
		fmt.Fprintf(&pool, "      initContainers: [{name: setup, image: 'setup:1'}]\n      volumes: [{name: config, configMap: {name: web}}, {name: tmp, emptyDir: {}}]\n      containers:\n")
		for n, c := range []string{"web", "log"} { // always in this order: another one is another template
			settings := []int{20, 3}[n]
			fmt.Fprintf(&pool, "      - name: %s\n        image: %s:%s\n        ports: [{containerPort: 8080, name: http-%s}]\n        resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: '1', memory: 2Gi}}\n", c, c, image, c)
			fmt.Fprintf(&pool, "        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 5}\n        volumeMounts: [{name: config, mountPath: /etc/web}, {name: tmp, mountPath: /tmp}]\n        env:\n")
			for e := range settings {
				fmt.Fprintf(&pool, "        - {name: SETTING_%d, value: 'the value of setting %d of template %d'}\n", e, e, i)
			}
		}
	}
	return fmt.Sprintf("replicas: %d\ntemplates: {%s}\ntemplatePool:\n%s", templates, uses.String(), pool.String())
}

// BenchmarkAdmission is one apply of a TApp with a pool of 50 templates: both
// webhooks, beside what the cluster takes for the dry runs and the reads.
func BenchmarkAdmission(b *testing.B) {
	const templates = 50
	process.BoundMemory(b.Context()) // as every command does
	stored := completed(b, object(b, poolOf(templates, "1")), nil)
	given := object(b, poolOf(templates, "2"))
	one := bytes.Replace(object(b, poolOf(templates, "1")), []byte(`"web:1"`), []byte(`"web:2"`), 1)
	stored, given, one = managed(b, stored), managed(b, given), managed(b, one)
	pods := podsOf(b, stored)
	for _, c := range []struct {
		name       string
		given, old []byte
	}{{"create", given, nil}, {"update", one, stored}, {"update-of-all", given, stored}} {
		b.Run(c.name, func(b *testing.B) {
			v := newTestValidator()
			v.reads.Pods = func(context.Context, *tappv1.TApp) ([]*corev1.Pod, error) { return pods, nil }
			webhooks := handlers(v)
			first, second := reviewOf(b, requestFor(c.given, c.old)), reviewOf(b, requestFor(completed(b, c.given, c.old), c.old))
			var took []time.Duration
			before := busy(b)
			for b.Loop() {
				began := time.Now()
				send(b, webhooks, "/mutate/tapp", first)
				send(b, webhooks, "/validate/tapp", second)
				took = append(took, time.Since(began))
			}
			used := busy(b) - before
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(took[0].Microseconds())/1000, "min-ms")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(used.Microseconds())/1000/float64(len(took)), "cpu-ms/op")
			b.ReportMetric(float64(len(c.given))/1024, "KiB")
		})
	}
}

// managed is the object as the API server sends it: it notes who set which field.
func managed(b *testing.B, object []byte) []byte {
	b.Helper()
	tree := decodeTree(b, object)
	tree["metadata"].(jsonMap)["managedFields"] = []any{jsonMap{
		"manager": "kubectl", "operation": "Apply", "apiVersion": "apps.tkestack.io/v1", "time": "2026-01-01T00:00:00Z",
		"fieldsType": "FieldsV1", "fieldsV1": jsonMap{"f:spec": fieldsIn(tree["spec"])},
	}}
	text, err := json.Marshal(tree)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// fieldsIn a value, as managedFields names them.
func fieldsIn(value any) jsonMap {
	out := jsonMap{}
	switch value := value.(type) {
	case jsonMap:
		for key, member := range value {
			out["f:"+key] = fieldsIn(member)
		}
	case []any:
		for _, element := range value {
			if m, ok := element.(jsonMap); ok {
				fields := fieldsIn(m)
				fields["."] = jsonMap{}
				out[fmt.Sprintf(`k:{"name":%q}`, m["name"])] = fields
			}
		}
	}
	return out
}

// busy is how long this process has computed: unlike what the clock says, it hardly
// depends on who else is at work on the machine.
func busy(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func send(b *testing.B, webhooks map[string]http.Handler, path string, body []byte) {
	w := post(webhooks[path], path, body)
	if w.Code != 200 || !bytes.Contains(w.Body.Bytes(), []byte(`"allowed":true`)) {
		b.Fatalf("%d: %.500s", w.Code, w.Body)
	}
}

func podsOf(b *testing.B, stored []byte) (pods []*corev1.Pod) {
	tapp, err := decodeTApp(stored)
	if err != nil {
		b.Fatal(err)
	}
	for id := range int(*tapp.Spec.Replicas) {
		pod := plan.PodOf(tapp, fmt.Sprintf("t%d", id), id)
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(tapp, tappv1.GroupVersionKind())}
		pods = append(pods, pod)
	}
	return pods
}
