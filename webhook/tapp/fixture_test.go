package tapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/spread"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/rule"
)

// base is a spec that nothing is wrong with; the cases of a table are put on top.
const base = `
replicas: 3
template:
  metadata: {labels: {app: web}}
  spec: {containers: [{name: web, image: "web:1"}]}
templatePool:
  canary:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:2"}]}
`

// object is a TApp named web with the base spec, in which the fields of the given
// YAML replace those of the base.
func object(t testing.TB, fields string) []byte {
	t.Helper()
	return objectNamed(t, "web", fields)
}

func objectNamed(t testing.TB, name, fields string) []byte {
	t.Helper()
	spec, over := map[string]any{}, map[string]any{}
	for text, into := range map[string]*map[string]any{base: &spec, fields: &over} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	for key, value := range over {
		if spec[key] = value; value == nil {
			delete(spec, key)
		}
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apps.tkestack.io/v1", "kind": "TApp",
		"metadata": map[string]any{"name": name, "namespace": "shop", "uid": "1"}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func tapp(t testing.TB, fields string) *tappv1.TApp {
	t.Helper()
	out, err := decodeTApp(object(t, fields))
	if err != nil {
		t.Fatal(err)
	}
	tappv1.Default(out)
	return out
}

func decodeTApp(raw []byte) (*tappv1.TApp, error) {
	out := &tappv1.TApp{}
	return out, kjson.Unmarshal(raw, out)
}

// asked is a request as the server decodes it.
func asked[T any](t testingTB, r *admissionv1.AdmissionRequest) *review.Request[T] {
	t.Helper()
	out, err := review.Decode[T](reviewOf(t, r))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// testingTB is what testing and rapid have in common.
type testingTB = rapid.TB

// reviewOf is the body that the API server sends.
func reviewOf(t testingTB, r *admissionv1.AdmissionRequest) []byte {
	t.Helper()
	out, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: r,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// post a review to a webhook.
func post(h http.Handler, path string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// handlers of the webhooks by path.
func handlers(v *Validator) map[string]http.Handler {
	m := review.NewMetrics(prometheus.NewRegistry())
	return map[string]http.Handler{
		"/mutate/tapp":   review.Handler("mutate", m, DecodeTrees, Mutate),
		"/validate/tapp": review.Handler("validate", m, DecodeTApps, v.Validate),
	}
}

// requestFor a TApp; no old object: a creation.
func requestFor(object, old []byte) *admissionv1.AdmissionRequest {
	r := &admissionv1.AdmissionRequest{
		UID: "review-1", Namespace: "shop", Name: "web", Operation: admissionv1.Create,
		Kind:     metav1.GroupVersionKind(tappv1.GroupVersionKind()),
		Resource: metav1.GroupVersionResource(tappv1.Resource()),
	}
	r.Object.Raw = object
	if old != nil {
		r.Operation, r.OldObject.Raw = admissionv1.Update, old
	}
	return r
}

// fakePods answers creates.
type fakePods struct {
	corev1client.PodInterface
	create func(context.Context, *corev1.Pod) error
}

func (f fakePods) Pods(string) corev1client.PodInterface { return f }

func (f fakePods) Create(ctx context.Context, pod *corev1.Pod, o metav1.CreateOptions) (*corev1.Pod, error) {
	if len(o.DryRun) != 1 || o.DryRun[0] != metav1.DryRunAll {
		panic("a pod would be created in earnest")
	}
	return pod, f.create(ctx, pod)
}

// newTestValidator makes one whose cluster takes every pod, and has none.
func newTestValidator() *Validator {
	return &Validator{
		dryRuns: dryRunner{pods: fakePods{create: func(context.Context, *corev1.Pod) error { return nil }}, spreads: func(context.Context) spread.Policy {
			return spread.Policy{Default: tappv1.SystemTopologySpread, Zones: true}
		}, concurrency: 4, turns: newTurns(), results: newDryRunResults(prometheus.NewRegistry())},
		reads: Reads{
			Resize: func(context.Context) bool { return true },
			Pods:   func(context.Context, *tappv1.TApp) ([]*corev1.Pod, error) { return nil, nil },
			TApps:  func(context.Context, string) ([]*tappv1.TApp, error) { return nil, nil },
		},
	}
}

// ruleCase is a spec and all that a rule says of it.
type ruleCase struct {
	name string
	spec string
	want string // findings, one a line
}

// testRule runs a table of one rule.
func testRule(t *testing.T, name string, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wantFindings(t, rule.Findings(name, ruleNamed(t, name).Judge(tapp(t, c.spec))), c.want)
		})
	}
}

func ruleNamed(t *testing.T, name string) rule.Rule[tappv1.TApp] {
	t.Helper()
	named := Rules().Named(name)
	if len(named) != 1 {
		t.Fatalf("there are %d rules %s", len(named), name)
	}
	return named[0]
}

func wantFindings(t *testing.T, found []rule.Finding, want string) {
	t.Helper()
	lines := make([]string, 0, len(found))
	for _, f := range found {
		lines = append(lines, f.String())
	}
	wantLines(t, lines, want)
}

func wantLines(t *testing.T, lines []string, want string) {
	t.Helper()
	if got := strings.Join(lines, "\n"); got != strings.TrimSpace(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, strings.TrimSpace(want))
	}
}

// merged is a YAML object with the fields of another one on top.
func merged(under, over string) string {
	spec, more := map[string]any{}, map[string]any{}
	if err := errors.Join(yaml.Unmarshal([]byte(under), &spec), yaml.Unmarshal([]byte(over), &more)); err != nil {
		panic(err)
	}
	maps.Copy(spec, more)
	out, err := yaml.Marshal(spec)
	if err != nil {
		panic(err)
	}
	return string(out)
}
