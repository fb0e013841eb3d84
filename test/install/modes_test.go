//go:build cluster

package install

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestModes: with each way to a certificate, admission is answered, a bad TApp is
// refused in words that help, and a good one runs.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		name   string
		values func(*testing.T) []string
		notes  string
	}{
		{"auto", func(*testing.T) []string { return nil }, "The webhooks' certificate: certManager (chosen because cert-manager is in the cluster; set tls.mode to keep it so)."},
		{"selfManaged", func(*testing.T) []string { return []string{"tls.mode=selfManaged"} }, "The webhooks' certificate: selfManaged."},
		{"provided", provided, "The webhooks' certificate: provided."},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, values := newRig(t), c.values(t)
			began := time.Now()
			if out := install(t, values...); !strings.Contains(out, c.notes) {
				t.Errorf("helm says nothing of %q:\n%s", c.notes, out)
			}
			r.answers()
			t.Logf("from helm install to the first answer of admission: %s", since(began))

			r.apply(goodTApp("web", 3, "nginx:1.25"))
			r.WaitReady("web")
			if n := len(r.pods("web")); n != 3 {
				t.Errorf("%d pods run, want 3", n)
			}
			rolledOut(t)
			if out := helm(t, "test", releaseName); !strings.Contains(out, "Phase:          Succeeded") || strings.Contains(out, "Failed") {
				t.Errorf("helm test:\n%s", out)
			}
		})
	}
}

// provided makes a certificate, and values that name it.
func provided(t *testing.T) []string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "provided"}, DNSNames: []string{releaseName + "." + releaseSpace + ".svc"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "provided"}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
	secrets := suite.Kube.CoreV1().Secrets(releaseSpace)
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := secrets.Delete(context.Background(), secret.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "values.yaml")
	text := "tls:\n  mode: provided\n  provided:\n    secretName: provided\n    caBundle: |\n      " + strings.ReplaceAll(strings.TrimSpace(string(certificate)), "\n", "\n      ") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--values=" + file}
}

// TestEverything: the API server takes every object that the chart can make, cert-manager's
// included, as it would store them.
func TestEverything(t *testing.T) {
	file := filepath.Join("..", "chart", "testdata", "values", "everything.yaml")
	manifest := helm(t, "template", releaseName, chartDir, "--values", file, "--api-versions", "cert-manager.io/v1",
		"--skip-tests", "--set", "metrics.serviceMonitor.enabled=false,metrics.prometheusRule.enabled=false,crds.install=false", // the first two are the Prometheus Operator's kinds
		"--set", "fleet.clusterNamespace="+releaseSpace+",fleet.charts.namespace="+releaseSpace)
	if out, err := suite.Command(t.Context(), manifest, "kubectl", "apply", "--filename", "-",
		"--dry-run=server", "--server-side", "--validate=strict"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWithoutAnImage: no registry has the image, so that there is no default; who names none
// is told by the API server.
func TestWithoutAnImage(t *testing.T) {
	manifest := helm(t, "template", releaseName, chartDir, "--show-only", "templates/deployment.yaml")
	out, err := suite.Command(t.Context(), manifest, "kubectl", "apply", "--filename", "-", "--dry-run=server")
	if want := `spec.template.spec.containers[0].image: Required value`; err == nil || !strings.Contains(out, want) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestLint is Helm's own judgement, by its program.
func TestLint(t *testing.T) {
	if out := helm(t, "lint", "--strict", chartDir); !strings.Contains(out, "1 chart(s) linted, 0 chart(s) failed") {
		t.Error(out)
	}
}
