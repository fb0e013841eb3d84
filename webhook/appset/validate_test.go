package appset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/webhook/review"
)

// requestOf is a review of an AppSet with this spec; was is "" on creation.
func requestOf(t *testing.T, spec, was string, change ...func(*admissionv1.AdmissionRequest)) []byte {
	t.Helper()
	raw := func(spec string) runtime.RawExtension {
		text, err := yaml.YAMLToJSON([]byte("{apiVersion: workload.dmall.com/v1beta1, kind: AppSet, metadata: {name: a, namespace: ns}, spec: " + spec + "}"))
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	r := &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Create, Name: "a", Namespace: "ns", Object: raw(spec),
		Kind:     metav1.GroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAppSet)),
		Resource: metav1.GroupVersionResource(v1beta1.AppSets())}
	if was != "" {
		r.Operation, r.OldObject = admissionv1.Update, raw(was)
	}
	for _, f := range change {
		f(r)
	}
	out, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: r,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestValidate: what an AppSet's writer gets to see.
func TestValidate(t *testing.T) {
	h := review.Handler("validate-appset", review.NewMetrics(prometheus.NewRegistry()), review.Decode[*v1beta1.AppSet], Webhook{}.Validate)
	const good, bad = `{podSpec: {` + template + `}}`, `{podSpec: {deployType: tapp}}`
	const two = `{podSpec: {` + template + `}, clusterTopology: {clusters: [{name: member1, podSets: [{name: web, replicas: 2, version: v1}]}]}}`
	staged := strings.Replace(two, "{podSpec", "{updateStrategy: {stages: [{name: first, groups: [canary]}]}, podSpec", 1)
	const unknown = `AppSet.workload.dmall.com "a" is invalid: spec.updateStrategy.stages[first].groups: Invalid value: no podSet is in group canary: have one say so in its meta (sym-group), or drop it here`
	const missing = `AppSet.workload.dmall.com "a" is invalid: spec.podSpec.template: Invalid value: deployType InPlaceSet needs a pod template`
	for _, c := range []struct {
		name     string
		body     []byte
		message  string // of the denial
		warnings string
	}{
		{"good", requestOf(t, good, ""), "", ""},
		{"bad", requestOf(t, bad, ""), missing, ""},
		{"bad as it was", requestOf(t, bad[:len(bad)-1]+", replicas: 1}", bad), "",
			"spec.podSpec.template: Invalid value: deployType InPlaceSet needs a pod template (this was so before, and does not block the update)"},
		{"a stage of a group that has gone", requestOf(t, staged, two), unknown, ""},
		{"a stage of a group that was not there before", requestOf(t, strings.Replace(staged, "replicas: 2", "replicas: 3", 1), staged), "",
			strings.TrimPrefix(unknown, `AppSet.workload.dmall.com "a" is invalid: `) + " (this was so before, and does not block the update)"},
		{"nothing changed", requestOf(t, bad, bad), "", ""},
		{"it is being deleted", requestOf(t, `{replicas: 2, podSpec: {deployType: tapp}}`, good, func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = bytes.Replace(r.Object.Raw, []byte(`"metadata":{`), []byte(`"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",`), 1)
		}), "", ""},
		{"a warning", requestOf(t, `{podSpec: {chart: {rawChart: H4s=}, `+template+`}}`, ""), "", "spec.podSpec.template: it has no effect with deployType helm: the chart has its own"},
		{"a preview", requestOf(t, strings.Replace(two, "v1", "v2", 1), two), "", "spec.clusterTopology.clusters[member1].podSets[web].version: version v2 labels the pods; their image stays a:1; leave out its tag to have the version there\n" +
			"stage rest (member1): 2 instances are recreated: only labels and annotations of the template changed; a Deployment makes new pods"},
		{"a deletion", requestOf(t, bad, "", func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete }), "", ""},
		{"a status", requestOf(t, bad, "", func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := answered(t, h, c.body); got != c.message+"|"+c.warnings {
				t.Errorf("got %s", got)
			}
		})
	}
}

// answered is the message of a denial, and the warnings.
func answered(t *testing.T, h http.Handler, body []byte) string {
	t.Helper()
	request := httptest.NewRequest("POST", "/validate/appset", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Response == nil {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	message := ""
	if got.Response.Result != nil {
		message = got.Response.Result.Message
	}
	if got.Response.Allowed != (message == "") {
		t.Errorf("allowed is %t, and the message %q", got.Response.Allowed, message)
	}
	return message + "|" + strings.Join(got.Response.Warnings, "\n")
}

// TestWrongKind: a webhook that was registered for something else says so.
func TestWrongKind(t *testing.T) {
	h := review.Handler("validate-appset", review.NewMetrics(prometheus.NewRegistry()), review.Decode[*v1beta1.AppSet], Webhook{}.Validate)
	request := httptest.NewRequest("POST", "/validate/appset", bytes.NewReader(requestOf(t, `{}`, "", func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "pods" })))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	if want := `this webhook judges appsets of workload.dmall.com/v1beta1, and got pods workload.dmall.com/v1beta1 of kind AppSet: correct the rules of the webhook configuration`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

// TestScale: a change of the scale is judged with the rest of the spec, and told where it
// has no effect.
func TestScale(t *testing.T) {
	const head, tail = `{replicas: 4, podSpec: {deployType: tapp, ` + template + `}, clusterTopology: {clusters: [{name: member1, podSets: [`, `]}]}}`
	for _, c := range []struct {
		name, podSets     string
		scale             string
		message, warnings string
	}{
		{"a podSet follows", "{name: web}", "{spec: {replicas: 5}}", "", "at once: 1 instance is created: replicas from 4 to 5"},
		{"no podSet follows", "{name: web, replicas: 4}", "{spec: {replicas: 5}}", "", "spec.replicas: the podSets have 4 instances of their own, so that 5 has no effect"},
		{"to none", "{name: web, replicas: 4}", "{}", "", "spec.replicas: the podSets have 4 instances of their own, so that 0 has no effect"},
		{"ids overlap then", "{name: web, ordinals: {start: 0}}]}, {name: member2, podSets: [{name: web, ordinals: {start: 2}}", "{spec: {replicas: 6}}", `AppSet.workload.dmall.com "a" is invalid: spec.clusterTopology.clusters[member2].podSets[web].ordinals: Invalid value: ids 2 to 4 overlap with ids 0 to 2 of the same podSet in cluster member1`, ""},
		{"it is not there", "", "{spec: {replicas: 5}}", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := Webhook{AppSet: func(context.Context, string, string) (*v1beta1.AppSet, error) {
				if c.podSets == "" {
					return nil, errors.New("it is not there")
				}
				a := &v1beta1.AppSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
				return a, yaml.Unmarshal([]byte(head+c.podSets+tail), &a.Spec)
			}}
			body := requestOf(t, "{}", "{}", func(r *admissionv1.AdmissionRequest) {
				text, err := yaml.YAMLToJSON([]byte(c.scale))
				if err != nil {
					t.Fatal(err)
				}
				r.SubResource, r.Kind, r.Object.Raw = "scale", metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, text
			})
			h := review.Handler("validate-appset", review.NewMetrics(prometheus.NewRegistry()), review.Decode[*v1beta1.AppSet], w.Validate)
			if got := answered(t, h, body); got != c.message+"|"+c.warnings {
				t.Errorf("got %s", got)
			}
		})
	}
}
