package appset

import (
	"bytes"
	"encoding/json"
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
	h := review.Handler("validate-appset", review.NewMetrics(prometheus.NewRegistry()), review.Decode[*v1beta1.AppSet], Validate)
	const good, bad = `{podSpec: {` + template + `}}`, `{podSpec: {deployType: tapp}}`
	const two = `{podSpec: {` + template + `}, clusterTopology: {clusters: [{name: member1, podSets: [{name: web, replicas: 2, version: v1}]}]}}`
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
			request := httptest.NewRequest("POST", "/validate/appset", bytes.NewReader(c.body))
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
			if got.Response.Allowed != (c.message == "") || message != c.message || strings.Join(got.Response.Warnings, "\n") != c.warnings {
				t.Errorf("got %+v", got.Response)
			}
		})
	}
}

// TestWrongKind: a webhook that was registered for something else says so.
func TestWrongKind(t *testing.T) {
	h := review.Handler("validate-appset", review.NewMetrics(prometheus.NewRegistry()), review.Decode[*v1beta1.AppSet], Validate)
	request := httptest.NewRequest("POST", "/validate/appset", bytes.NewReader(requestOf(t, `{}`, "", func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "pods" })))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	if want := `this webhook judges appsets of workload.dmall.com/v1beta1, and got pods workload.dmall.com/v1beta1 of kind AppSet: correct the rules of the webhook configuration`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
