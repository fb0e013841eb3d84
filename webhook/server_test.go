package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
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
	"k8s.io/client-go/rest"
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

// tappReview is the creation of a TApp.
func tappReview(replicas int) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"review-1","operation":"CREATE","namespace":"shop","name":"web",
"kind":{"group":"apps.tkestack.io","version":"v1","kind":"TApp"},"resource":{"group":"apps.tkestack.io","version":"v1","resource":"tapps"},
"object":{"apiVersion":"apps.tkestack.io/v1","kind":"TApp","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":%d,
"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}}}`, replicas)
}

// newTestServer has the given parts of a configuration, and an API server with the
// pods that it is asked to create.
func newTestServer(t *testing.T, c Config) *server {
	t.Helper()
	api := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"List","apiVersion":"v1","items":[]}`))
	})
	defaults := Defaults()
	c.ListenAddress, c.KubeAPIQPS, c.KubeAPIBurst, c.DryRuns = defaults.ListenAddress, defaults.KubeAPIQPS, defaults.KubeAPIBurst, defaults.DryRuns
	c.MaxReviews, c.MaxReviewBytes, c.DefaultTopologySpread = defaults.MaxReviews, defaults.MaxReviewBytes, defaults.DefaultTopologySpread
	c.REST = &rest.Config{Host: api}
	if c.Certificates == nil {
		c.Certificates = &testCertificate{ready: true}
	}
	s, err := newServer(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
	response, err := client.Post(url+"/mutate/tapp?timeout=10s", "application/json", strings.NewReader(tappReview(3)))
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
	response, err = client.Post(url+"/validate/tapp", "application/json", strings.NewReader(tappReview(-1)))
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("at the end: %v, %v", response, err)
	}
	_ = response.Body.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRoutes: what is where.
func TestRoutes(t *testing.T) {
	h := newTestServer(t, Config{}).handler
	for _, c := range []struct {
		name, method, path, body string
		code                     int
		want                     string // a part of the answer
	}{
		{"mutate", "POST", "/mutate/tapp", tappReview(3), 200, `"uid":"review-1","allowed":true,"patch":"`},
		{"validate", "POST", "/validate/tapp", tappReview(3), 200, `"uid":"review-1","allowed":true}`},
		{"validate Apps", "POST", "/validate/app", tappReview(3), 200, `"message":"this webhook judges apps of appcontroller.k8s.io/v1, and got tapps apps.tkestack.io/v1 of kind TApp: correct the rules of the webhook configuration"`},
		{"get", "GET", "/mutate/tapp", "", 405, ""},
		{"elsewhere", "POST", "/mutate", "", 404, ""},
		{"health", "GET", "/healthz", "", 200, "ok\n"},
		{"readiness", "GET", "/readyz", "", 200, "ok\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d and %s\nwant %d and %s", w.Code, w.Body, c.code, c.want)
			}
		})
	}
}

// TestReadiness: not before there is a certificate, nor at the end.
func TestReadiness(t *testing.T) {
	certificate := &testCertificate{}
	s := newTestServer(t, Config{Certificates: certificate})
	h := s.handler
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
	s.readiness.End()
	ready("503 this replica is ending\n")
}

func TestConfig(t *testing.T) {
	bad := Config{ShutdownDelay: -1}
	const want = `--listen-address is empty; give an address such as :8443
--kube-api-qps is 0; give a number above 0
--kube-api-burst is 0; give a number above 0
--admission-dry-runs is 0; at least 1 pod has to be tried at a time
--default-topology-spread is ""; give None or System
--admission-max-reviews is 0; give a number above 0
--admission-max-bytes is 0; a single review may have 8388608
--admission-shutdown-delay is -1ns; give 0 or more
there is no certificate to serve admission with`
	if err := Run(t.Context(), bad); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
