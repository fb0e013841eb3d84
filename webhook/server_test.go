package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// testCertificate is for 127.0.0.1; false: there is none yet.
type testCertificate struct {
	tls.Certificate
	ready bool
}

func (c *testCertificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &c.Certificate, nil
}

func (c *testCertificate) Ready() bool { return c.ready }

func newCertificate(t *testing.T) *testCertificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	c := &testCertificate{Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ready: true}
	if c.Leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c
}

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

// TestRun: reviews over HTTP/2 and TLS 1.3, and the end of it.
func TestRun(t *testing.T) {
	certificate := newCertificate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := Defaults()
	c.ShutdownDelay = time.Second
	c.REST, c.Listener, c.Certificates, c.Registry = &rest.Config{Host: "https://127.0.0.1:1"}, listener, certificate, prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c) }()

	trust := x509.NewCertPool()
	trust.AddCert(certificate.Leaf)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport}
	url := "https://" + listener.Addr().String()
	response, err := client.Post(url+"/mutate/tapp?timeout=10s", "application/json", bytes.NewReader(reviewOf(t, requestFor(object(t, ""), nil))))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != 2 || response.TLS.Version != tls.VersionTLS13 {
		t.Errorf("got %s by %s and TLS %x, %v: %s", response.Status, response.Proto, response.TLS.Version, err, body)
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}}}
	if _, err := old.Get(url + "/healthz"); err == nil || !strings.Contains(err.Error(), "protocol version not supported") {
		t.Errorf("TLS 1.2: %v", err)
	}
	cancel()
	for ready := true; ready; { // it is told that the end comes, and still answered
		response, err := client.Get(url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		ready = response.StatusCode == http.StatusOK
	}
	response, err = client.Post(url+"/validate/tapp", "application/json", bytes.NewReader(reviewOf(t, requestFor(object(t, "replicas: -1"), nil))))
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("at the end: %v, %v", response, err)
	}
	_ = response.Body.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRequests: what is no review, and what is one that cannot be meant.
func TestRequests(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	h := (&server{certificates: &testCertificate{ready: true}}).routes(m, mutate, newTestValidator().validate)
	good := requestFor(object(t, ""), nil)
	changed := func(change func(*admissionv1.AdmissionRequest)) string {
		r := good.DeepCopy()
		change(r)
		return string(reviewOf(t, r))
	}
	for _, c := range []struct {
		name, method, path, contentType, body string
		code                                  int
		want                                  string // a part of the answer
	}{
		{"mutate", "POST", "/mutate/tapp", "application/json", string(reviewOf(t, good)), 200, `"uid":"review-1","allowed":true,"patch":"`},
		{"validate", "POST", "/validate/tapp", "application/json; charset=utf-8", string(reviewOf(t, good)), 200, `"uid":"review-1","allowed":true}`},
		{"get", "GET", "/mutate/tapp", "", "", 405, ""},
		{"elsewhere", "POST", "/mutate", "application/json", "", 404, ""},
		{"content type", "POST", "/mutate/tapp", "application/yaml", "", 415, `the content type is "application/yaml"; send application/json`},
		{"no content type", "POST", "/mutate/tapp", "", "", 415, `the content type is ""; send application/json`},
		{"too large", "POST", "/validate/tapp", "application/json", strings.Repeat(" ", mostBytes+1), 413, "the review has more than 8388608 bytes"},
		{"empty", "POST", "/validate/tapp", "application/json", "", 400, "the body is no AdmissionReview: unexpected end of JSON input"},
		{"another version", "POST", "/validate/tapp", "application/json", strings.Replace(string(reviewOf(t, good)), "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), 400,
			`the body is a "AdmissionReview" of "admission.k8s.io/v1beta1"; send an AdmissionReview of admission.k8s.io/v1`},
		{"another case", "POST", "/validate/tapp", "application/json", strings.Replace(string(reviewOf(t, good)), `"request"`, `"Request"`, 1), 400,
			"the AdmissionReview has no request, or one without a UID"},
		{"no UID", "POST", "/validate/tapp", "application/json", changed(func(r *admissionv1.AdmissionRequest) { r.UID = "" }), 400, "the AdmissionReview has no request, or one without a UID"},
		{"another kind", "POST", "/validate/tapp", "application/json", changed(func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "Pod" }), 200,
			`"allowed":false,"status":{"metadata":{},"status":"Failure","message":"this webhook judges tapps of apps.tkestack.io/v1, and got tapps apps.tkestack.io/v1 of kind Pod: correct the rules of the webhook configuration","reason":"BadRequest","code":400}`},
		{"another version of the kind", "POST", "/mutate/tapp", "application/json", changed(func(r *admissionv1.AdmissionRequest) { r.Kind.Version = "v2" }), 200, `"allowed":false`},
		{"another resource", "POST", "/mutate/tapp", "application/json", changed(func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "pods" }), 200, `"allowed":false`},
		{"scale of another kind", "POST", "/validate/tapp", "application/json", changed(func(r *admissionv1.AdmissionRequest) { r.SubResource = "scale" }), 200, `"allowed":false`},
		{"status", "POST", "/validate/tapp", "application/json", changed(func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }), 200, `"allowed":true}`},
		{"deletion", "POST", "/validate/tapp", "application/json", changed(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete }), 200, `"allowed":true}`},
		{"no object", "POST", "/validate/tapp", "application/json", changed(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }), 200, `"message":"the request has no object"`},
		{"no object to mutate", "POST", "/mutate/tapp", "application/json", changed(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`[]`) }), 200, `"message":"the body is no AdmissionReview: json: cannot unmarshal array into Go struct field request[map[string]interface {}].request.object of type map[string]interface {}"`},
		{"health", "GET", "/healthz", "", "", 200, "ok\n"},
		{"readiness", "GET", "/readyz", "", "", 200, "ok\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path+"?timeout=1s", strings.NewReader(c.body))
			if c.contentType != "" {
				r.Header.Set("Content-Type", c.contentType)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d and %s\nwant %d and %s", w.Code, w.Body, c.code, c.want)
			}
		})
	}
	if n := testutil.ToFloat64(m.malformed.WithLabelValues("validate")); n != 5 {
		t.Errorf("%v malformed requests were counted", n)
	}
}

// TestPanic: it ends the review, and nothing else; the failurePolicy decides.
func TestPanic(t *testing.T) {
	m := newMetrics(prometheus.NewRegistry())
	h := (&server{certificates: &testCertificate{ready: true}}).routes(m, func(context.Context, *request[map[string]any]) (answer, error) { panic("no") }, nil)
	r := httptest.NewRequest("POST", "/mutate/tapp", bytes.NewReader(reviewOf(t, requestFor(object(t, ""), nil))))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 500 || w.Body.String() != "the review was broken off by an internal error; the log of the webhook has more\n" || testutil.ToFloat64(m.panics.WithLabelValues("mutate")) != 1 {
		t.Errorf("got %d and %s, %v counted", w.Code, w.Body, testutil.ToFloat64(m.panics.WithLabelValues("mutate")))
	}
}

// TestReadiness: not before there is a certificate, nor at the end.
func TestReadiness(t *testing.T) {
	certificate := &testCertificate{}
	s := &server{certificates: certificate}
	h := s.routes(newMetrics(prometheus.NewRegistry()), nil, nil)
	ready := func(want string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	ready("503 there is no certificate yet\n")
	certificate.ready = true
	ready("200 ok\n")
	s.ending.Store(true)
	ready("503 this replica is ending\n")
}

// TestDeadline: a review is answered before the API server stops waiting, whatever
// hangs.
func TestDeadline(t *testing.T) {
	v := newTestValidator()
	v.pods.pods = fakePods{create: func(ctx context.Context, _ *corev1.Pod) error { <-ctx.Done(); return ctx.Err() }}
	v.reads.TApps = func(ctx context.Context, _ string) ([]*tappv1.TApp, error) { <-ctx.Done(); return nil, ctx.Err() }
	h := review("validate", newMetrics(prometheus.NewRegistry()), decodeTApps, v.validate)
	r := httptest.NewRequest("POST", "/validate/tapp?timeout=100ms", bytes.NewReader(reviewOf(t, requestFor(object(t, ""), nil))))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	const want = `"allowed":true,"warnings":["spec.template, spec.templatePool[canary]: whether the cluster takes its pods could not be found out in time"]`
	if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %d and %s", w.Code, w.Body)
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

// TestVerdictMetrics: by rule.
func TestVerdictMetrics(t *testing.T) {
	m := newMetrics(prometheus.NewRegistry())
	v := newTestValidator()
	h := review("validate", m, decodeTApps, v.validate)
	send := func(object []byte) {
		t.Helper()
		r := httptest.NewRequest("POST", "/validate/tapp", bytes.NewReader(reviewOf(t, requestFor(object, nil))))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	send(object(t, ""))
	send(object(t, "statuses: {'0': Succ}"))
	send(object(t, "{replicas: 60000, templates: {'x': canary}}"))
	v.reads.TApps = func(context.Context, string) ([]*tappv1.TApp, error) { return nil, errors.New("no") }
	send(object(t, ""))
	for labels, want := range map[[2]string]float64{
		{"allowed", ""}: 2, {"warned", "Statuses"}: 1, {"denied", "Replicas"}: 1, {"denied", "InstanceIDs"}: 1,
	} {
		if got := testutil.ToFloat64(m.verdicts.WithLabelValues("validate", labels[0], labels[1])); got != want {
			t.Errorf("%v: %v, want %v", labels, got, want)
		}
	}
	if n := testutil.CollectAndCount(m.duration); n != 1 {
		t.Errorf("%d series of durations", n)
	}
}

func TestConfig(t *testing.T) {
	bad := Config{ShutdownDelay: -1}
	const want = `--listen-address is empty; give an address such as :8443
--kube-api-qps is 0; give a number above 0
--kube-api-burst is 0; give a number above 0
--admission-dry-runs is 0; at least 1 pod has to be tried at a time
--admission-shutdown-delay is -1ns; give 0 or more
there is no certificate to serve admission with`
	if err := Run(t.Context(), bad); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
