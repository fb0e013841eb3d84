package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/process"
)

// TestSecureMetrics: they are served with the certificate of the webhooks, to those
// who may have them, and not elsewhere any more.
func TestSecureMetrics(t *testing.T) {
	api := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			review := authenticationv1.TokenReview{Status: authenticationv1.TokenReviewStatus{Authenticated: true}}
			_ = json.NewEncoder(w).Encode(review)
			return
		}
		_ = json.NewEncoder(w).Encode(authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}})
	})
	a := NewAdmission("test")
	a.REST, a.ListenAddress, a.ShutdownDelay = &rest.Config{Host: api}, "127.0.0.1:0", 0
	dir := t.TempDir()
	a.TLS.CertFile, a.TLS.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writePair(t, a.TLS.CertFile, a.TLS.KeyFile)
	registry := prometheus.NewRegistry()
	a.Registry = registry
	if err := a.Prepare(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	parts := process.NewParts(ctx)
	if left, err := a.ServeMetrics(parts, registry); err != nil || left == nil {
		t.Fatalf("without an address: %v, %v", left, err)
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.SecureMetricsAddress = probe.Addr().String()
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := a.ServeMetrics(parts, registry)
	if err != nil || left != nil {
		t.Fatalf("left for elsewhere: %v, %v", left, err)
	}
	parts.Run(a.Run)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	get := func(token string) (int, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+a.SecureMetricsAddress+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return 0, err.Error()
		}
		return response.StatusCode, string(body)
	}
	code, body := get("token")
	for code == 0 && ctx.Err() == nil { // the certificate is being read
		code, body = get("token")
	}
	if code != 200 || !strings.Contains(body, "tapp_certificate_expiry_timestamp_seconds") {
		t.Errorf("got %d and %s", code, body)
	}
	if code, body := get(""); code != 401 {
		t.Errorf("without a token: %d and %s", code, body)
	}
	cancel()
	if err := parts.Wait(); err != nil {
		t.Error(err)
	}
}

// writePair writes a certificate and its key.
func writePair(t *testing.T, certFile, keyFile string) {
	t.Helper()
	c := newCertificate(t)
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: c.Certificate.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
