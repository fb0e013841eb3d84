package app

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/webhook/review"
)

// appRequest is a review of an App with this spec; was is "" on creation.
func appRequest(t *testing.T, spec, was string, change ...func(*admissionv1.AdmissionRequest)) []byte {
	t.Helper()
	raw := func(spec string) runtime.RawExtension {
		text, err := yaml.YAMLToJSON([]byte("{apiVersion: appcontroller.k8s.io/v1, kind: App, metadata: {name: a, namespace: ns}, spec: " + spec + "}"))
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	r := &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Create, Name: "a", Namespace: "ns", Object: raw(spec),
		Kind: metav1.GroupVersionKind(appv1.GroupVersionKind()), Resource: metav1.GroupVersionResource(appv1.Resource())}
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

// TestValidate: what an App's writer gets to see.
func TestValidate(t *testing.T) {
	rival := &appv1.App{ObjectMeta: metav1.ObjectMeta{Name: "rival"}}
	apps := &Validator{Naming: func(_ context.Context, _, _, name string) ([]*appv1.App, error) {
		if name == "taken" {
			return []*appv1.App{rival}, nil
		}
		return nil, nil
	}}
	h := review.Handler("validate-app", review.NewMetrics(prometheus.NewRegistry()), review.Decode[*appv1.App], apps.Validate)
	const good = `{deploymentTemplate: {name: web, image: nginx, replicas: 2}, serviceTemplate: {name: web}}`
	const noImage = `{deploymentTemplate: {name: web, replicas: 2}}`
	const missing = "spec.deploymentTemplate.image: Required value: the Deployment has a name and no image; give the image of its container, or leave the name out"
	for _, c := range []struct {
		name    string
		body    []byte
		message string // of the denial
		warning string
	}{
		{"good", appRequest(t, good, ""), "", ""},
		{"changed", appRequest(t, good, `{}`), "", ""},
		{"no image", appRequest(t, noImage, ""), `App.appcontroller.k8s.io "a" is invalid: ` + missing, ""},
		{"two faults", appRequest(t, `{deploymentTemplate: {name: W, image: a, replicas: -1}}`, ""), `App.appcontroller.k8s.io "a" is invalid: ` +
			`spec.deploymentTemplate.name: Invalid value: "W": it is no DNS label; give lower case letters, digits and dashes, at most 63, with a letter or a digit at either end; ` +
			`spec.deploymentTemplate.replicas: Invalid value: -1: it is negative; give 0 or more`, ""},
		{"an old fault", appRequest(t, `{deploymentTemplate: {name: web, replicas: 3}}`, noImage), "", missing + " (this was so before, and does not block the update)"},
		{"taken", appRequest(t, `{serviceTemplate: {name: taken}}`, ""), "",
			`spec.serviceTemplate.name: the App "rival" names the Service "taken" too; only one of them can have it, and the other one is Stalled until the name is free`},
		{"the same spec", appRequest(t, noImage, noImage), "", ""},
		{"defaults spelt out", appRequest(t, `{serviceTemplate: {name: taken, port: 8080, type: ClusterIP}}`, `{serviceTemplate: {name: taken}}`), "", ""},
		{"the status", appRequest(t, noImage, "", func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }), "", ""},
		{"a deletion", appRequest(t, noImage, "", func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete }), "", ""},
		{"no object", appRequest(t, good, "", func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }), "the request has no object", ""},
		{"no old object", appRequest(t, good, good, func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = nil }), "the request has no old object", ""},
		{"another kind", appRequest(t, good, "", func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "Pod" }),
			"this webhook judges apps of appcontroller.k8s.io/v1, and got apps appcontroller.k8s.io/v1 of kind Pod: correct the rules of the webhook configuration", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/validate/app", bytes.NewReader(c.body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var out admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			message, warning := "", ""
			if out.Response.Result != nil {
				message = out.Response.Result.Message
			}
			if len(out.Response.Warnings) > 0 {
				warning = out.Response.Warnings[0]
			}
			if out.Response.Allowed != (c.message == "") || message != c.message || warning != c.warning || len(out.Response.Warnings) > 1 {
				t.Errorf("got %v, %q, %q", out.Response.Allowed, message, out.Response.Warnings)
			}
		})
	}
}
