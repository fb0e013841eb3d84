package webhook

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/rule"
)

// box is a kind that nobody else knows.
type box struct {
	metav1.ObjectMeta `json:"metadata"`
	Size              int `json:"size"`
}

var boxRules = rule.Rules[box]{{Name: "Size", Judge: func(b *box) field.ErrorList {
	if b.Size > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("size"), b.Size, "give a number above 0")}
}}}

func judgeBox(ctx context.Context, r *review.Request[*box]) (review.Answer, error) {
	var w rule.Warnings
	denied, err := boxRules.Judge(ctx, r.Object, r.OldObject, &w)
	if err != nil {
		return review.Answer{}, err
	}
	if len(denied) > 0 {
		return review.Deny(rule.Invalid(schema.GroupKind{Group: "test", Kind: "Box"}, r.Name, denied), rule.Names(denied)), nil
	}
	return review.Allow(w.Texts, w.Rules), nil
}

var boxes = Kind{Name: "box", Webhooks: func(b Backend) ([]Webhook, error) {
	return []Webhook{{Name: "validate.box.test", Path: "/validate/box", Version: schema.GroupVersion{Group: "test", Version: "v1"}, Resources: []string{"boxes"},
		Handler: review.Handler("validate-box", b.Reviews, review.Decode[*box], judgeBox)}}, nil
}}

// TestNewKind: a row of the table is all that a kind needs to be registered, judged
// and measured.
func TestNewKind(t *testing.T) {
	a, registry := NewAdmission("v1"), prometheus.NewRegistry()
	a.Served = append(Kinds(), boxes)
	a.REST, a.Registry, a.ListenAddress = &rest.Config{Host: "http://127.0.0.1"}, registry, "127.0.0.1:0"
	a.Register, a.Kinds, a.TLS.SecretNamespace, a.TLS.DNSNames = true, []string{"box", KindApp}, "ns", []string{"tapp.ns.svc"}
	if err := a.Prepare(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Listener.Close() }()

	mutating, validating, err := a.configurations()
	if err != nil || len(mutating.Webhooks) > 0 || len(validating.Webhooks) != 2 {
		t.Fatalf("registered: %v, %v, %v", mutating, validating, err)
	}
	if w := validating.Webhooks[1]; w.Name != "validate.box.test" || *w.ClientConfig.Service.Path != "/validate/box" || w.Rules[0].APIGroups[0] != "test" || w.Rules[0].Resources[0] != "boxes" {
		t.Errorf("registered: %+v", w)
	}

	body := strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","name":"b","operation":"CREATE","object":{"size":0}}}`)
	r, w := httptest.NewRequest("POST", "/validate/box", body), httptest.NewRecorder()
	r.Header.Set("Content-Type", "application/json")
	a.server.handler.ServeHTTP(w, r)
	if want := `"message":"Box.test \"b\" is invalid: size: Invalid value: 0: give a number above 0"`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %d and %s", w.Code, w.Body)
	}
	const want = `
# HELP tapp_admission_verdicts_total Verdicts by webhook and rule: allowed, warned or denied. A review counts once for each rule that warned or denied, or once as allowed, without a rule.
# TYPE tapp_admission_verdicts_total counter
tapp_admission_verdicts_total{rule="Size",verdict="denied",webhook="validate-box"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "tapp_admission_verdicts_total"); err != nil {
		t.Error(err)
	}
}
