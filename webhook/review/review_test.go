package review

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object of a kind that only these tests know.
type object struct {
	Size int `json:"size"`
}

// judgeSize answers every way there is, by the size.
func judgeSize(_ context.Context, r *Request[*object]) (Answer, error) {
	switch {
	case r.Object == nil:
		return Answer{}, errors.New("the request has no object")
	case r.Object.Size > 1:
		return Deny(metav1.Status{Message: "too large"}, []string{"Size"}), nil
	}
	a := Allow([]string{"small"}, []string{"Size"})
	a.SetPatch([]byte("[]"))
	return a, nil
}

func bodyOf(t *testing.T, raw string) string {
	t.Helper()
	r := &admissionv1.AdmissionRequest{UID: "review-1", Operation: admissionv1.Create}
	r.Object.Raw = []byte(raw)
	out, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: r})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func post(h http.Handler, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/?timeout=1s", strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestHandler: what is a review, what is none, and the answers.
func TestHandler(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	h := Handler("size", m, Decode[*object], judgeSize)
	good := bodyOf(t, `{"size":1}`)
	for _, c := range []struct {
		name, contentType, body string
		code                    int
		want                    string // a part of the response
	}{
		{"allowed", "application/json", good, 200, `"uid":"review-1","allowed":true,"patch":"W10=","patchType":"JSONPatch","warnings":["small"]}`},
		{"denied", "application/json; charset=utf-8", bodyOf(t, `{"size":2}`), 200, `"uid":"review-1","allowed":false,"status":{"metadata":{},"message":"too large"}}`},
		{"content type", "application/yaml", good, 415, `the content type is "application/yaml"; send application/json`},
		{"no content type", "", good, 415, `the content type is ""; send application/json`},
		{"too large", "application/json", strings.Repeat(" ", MaxBytes+1), 413, "the review has more than 8388608 bytes"},
		{"empty", "application/json", "", 400, "the body is no AdmissionReview: unexpected end of JSON input"},
		{"another version", "application/json", strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), 400,
			`the body is a "AdmissionReview" of "admission.k8s.io/v1beta1"; send an AdmissionReview of admission.k8s.io/v1`},
		{"another case", "application/json", strings.Replace(good, `"request"`, `"Request"`, 1), 400, "the AdmissionReview has no request, or one without a UID"},
		{"no UID", "application/json", strings.Replace(good, "review-1", "", 1), 400, "the AdmissionReview has no request, or one without a UID"},
		{"an object of another type", "application/json", bodyOf(t, `[]`), 200,
			`"uid":"review-1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"the body is no AdmissionReview: json: cannot unmarshal array into Go struct field`},
		{"no object", "application/json", bodyOf(t, `null`), 200, `"message":"the request has no object","reason":"BadRequest","code":400}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := post(h, c.contentType, c.body)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d and %s\nwant %d and %s", w.Code, w.Body, c.code, c.want)
			}
		})
	}
	if n := testutil.ToFloat64(m.malformed.WithLabelValues("size")); n != 7 {
		t.Errorf("%v malformed requests were counted", n)
	}
	for labels, want := range map[[2]string]float64{{"warned", "Size"}: 1, {"denied", "Size"}: 1, {"denied", "Request"}: 2} {
		if n := testutil.ToFloat64(m.verdicts.WithLabelValues("size", labels[0], labels[1])); n != want {
			t.Errorf("%v: %v, want %v", labels, n, want)
		}
	}
}

// TestOperationLabel: what callers send makes no labels of its own.
func TestOperationLabel(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	h := Handler("size", m, Decode[*object], judgeSize)
	for _, operation := range []string{"CREATE", "UPDATE", "DELETE", "CONNECT", "create", "", "anything", strings.Repeat("x", 4<<20)} {
		if w := post(h, "application/json", strings.Replace(bodyOf(t, `{}`), `"CREATE"`, `"`+operation+`"`, 1)); w.Code != 200 {
			t.Fatalf("got %d and %s", w.Code, w.Body)
		}
	}
	if n := testutil.CollectAndCount(m.duration); n != 5 {
		t.Errorf("there are %d series, want create, update, delete, connect and other", n)
	}
}

// TestPanic: it ends the review, and nothing else; the failurePolicy decides.
func TestPanic(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	w := post(Handler("size", m, Decode[*object], func(context.Context, *Request[*object]) (Answer, error) { panic("no") }), "application/json", bodyOf(t, `{}`))
	if w.Code != 500 || w.Body.String() != "the review was broken off by an internal error; the log of the webhook has more\n" || testutil.ToFloat64(m.panics.WithLabelValues("size")) != 1 {
		t.Errorf("got %d and %s, %v counted", w.Code, w.Body, testutil.ToFloat64(m.panics.WithLabelValues("size")))
	}
}

// TestTimeout: what the API server asks for, within bounds.
func TestTimeout(t *testing.T) {
	began := time.Now()
	for query, want := range map[string]time.Duration{
		"": 9 * time.Second, "?timeout=2s": 1800 * time.Millisecond, "?timeout=1h": 27 * time.Second, "?timeout=no": 9 * time.Second, "?timeout=-1s": 9 * time.Second,
	} {
		ctx, cancel := withDeadline(httptest.NewRequest("POST", "/validate/tapp"+query, nil), began)
		if deadline, _ := ctx.Deadline(); deadline.Sub(began) != want {
			t.Errorf("%q: %v, want %v", query, deadline.Sub(began), want)
		}
		cancel()
	}
}

// TestWrongKind: the error says what the webhook is for, and what came.
func TestWrongKind(t *testing.T) {
	r := &admissionv1.AdmissionRequest{Kind: metav1.GroupVersionKind{Kind: "Scale"}, Resource: metav1.GroupVersionResource{Group: "g", Version: "v2", Resource: "as"}, SubResource: "scale"}
	const want = "this webhook judges bs of g/v1, and got as/scale g/v2 of kind Scale: correct the rules of the webhook configuration"
	if err := WrongKind(schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "bs"}, r); err.Error() != want {
		t.Errorf("got %v", err)
	}
}
