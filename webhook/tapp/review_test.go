package tapp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/review"
)

// TestRequests: which requests are answered, and which cannot be meant.
func TestRequests(t *testing.T) {
	webhooks := handlers(newTestValidator())
	good := requestFor(object(t, ""), nil)
	changed := func(change func(*admissionv1.AdmissionRequest)) []byte {
		r := good.DeepCopy()
		change(r)
		return reviewOf(t, r)
	}
	for _, c := range []struct {
		name, path string
		body       []byte
		want       string // a part of the answer
	}{
		{"mutate", "/mutate/tapp", reviewOf(t, good), `"uid":"review-1","allowed":true,"patch":"`},
		{"validate", "/validate/tapp", reviewOf(t, good), `"uid":"review-1","allowed":true}`},
		{"another kind", "/validate/tapp", changed(func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "Pod" }),
			`"allowed":false,"status":{"metadata":{},"status":"Failure","message":"this webhook judges tapps of apps.tkestack.io/v1, and got tapps apps.tkestack.io/v1 of kind Pod: correct the rules of the webhook configuration","reason":"BadRequest","code":400}`},
		{"another version of the kind", "/mutate/tapp", changed(func(r *admissionv1.AdmissionRequest) { r.Kind.Version = "v2" }), `"allowed":false`},
		{"another resource", "/mutate/tapp", changed(func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "pods" }), `"allowed":false`},
		{"scale of another kind", "/validate/tapp", changed(func(r *admissionv1.AdmissionRequest) { r.SubResource = "scale" }), `"allowed":false`},
		{"status", "/validate/tapp", changed(func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }), `"allowed":true}`},
		{"deletion", "/validate/tapp", changed(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete }), `"allowed":true}`},
		{"no object", "/validate/tapp", changed(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }), `"message":"the request has no object"`},
		{"no object to mutate", "/mutate/tapp", changed(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`[]`) }),
			`"message":"the body is no AdmissionReview: json: cannot unmarshal array into Go struct field Request[map[string]interface {}].request.object of type map[string]interface {}"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := post(webhooks[c.path], c.path+"?timeout=1s", c.body)
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d and %s\nwant 200 and %s", w.Code, w.Body, c.want)
			}
		})
	}
}

// TestDeadline: a review is answered before the API server stops waiting, whatever
// hangs.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock moves only while all wait
		v := newTestValidator()
		v.dryRuns.pods = fakePods{create: func(ctx context.Context, _ *corev1.Pod) error { <-ctx.Done(); return ctx.Err() }}
		v.reads.TApps = func(ctx context.Context, _ string) ([]*tappv1.TApp, error) { <-ctx.Done(); return nil, ctx.Err() }
		w := post(handlers(v)["/validate/tapp"], "/validate/tapp?timeout=100ms", reviewOf(t, requestFor(object(t, ""), nil)))
		const want = `"allowed":true,"warnings":["spec.template, spec.templatePool[canary]: whether the cluster takes its pods could not be found out in time"]`
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("got %d and %s", w.Code, w.Body)
		}
	})
}

// TestVerdictMetrics: by rule.
func TestVerdictMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	v := newTestValidator()
	h := review.Handler("validate", review.NewMetrics(registry), DecodeTApps, v.Validate)
	send := func(object []byte) {
		t.Helper()
		post(h, "/validate/tapp", reviewOf(t, requestFor(object, nil)))
	}
	send(object(t, ""))
	send(object(t, "statuses: {'0': Succ}"))
	send(object(t, "{replicas: 60000, templates: {'x': canary}}"))
	v.reads.TApps = func(context.Context, string) ([]*tappv1.TApp, error) { return nil, errors.New("no") }
	send(object(t, ""))
	const want = `
# HELP tapp_admission_verdicts_total Verdicts by webhook and rule: allowed, warned or denied. A review counts once for each rule that warned or denied, or once as allowed, without a rule.
# TYPE tapp_admission_verdicts_total counter
tapp_admission_verdicts_total{rule="",verdict="allowed",webhook="validate"} 2
tapp_admission_verdicts_total{rule="InstanceIDs",verdict="denied",webhook="validate"} 1
tapp_admission_verdicts_total{rule="Replicas",verdict="denied",webhook="validate"} 1
tapp_admission_verdicts_total{rule="Statuses",verdict="warned",webhook="validate"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "tapp_admission_verdicts_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "tapp_admission_duration_seconds"); n != 1 || err != nil {
		t.Errorf("%d series of durations, %v", n, err)
	}
}
