package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// signer is a CA of clients.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signer{parsed, key}
}

// write the CA to a file.
func (s signer) write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s signer) sign(t *testing.T, commonName string, dnsNames ...string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: commonName}, DNSNames: dnsNames, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, s.certificate, &s.key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: s.key}
}

// TestClients: who may call, and that a new CA needs no restart.
func TestClients(t *testing.T) {
	ours, theirs := newSigner(t), newSigner(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	ours.write(t, file)
	for _, c := range []struct {
		name    string
		clients Clients
		shows   []tls.Certificate
		refused string
	}{
		{"everybody may", Clients{}, nil, ""},
		{"no certificate", Clients{CAFile: file}, nil, "certificate required"},
		{"one of our CA", Clients{CAFile: file}, []tls.Certificate{ours.sign(t, "anybody")}, ""},
		{"one of another CA", Clients{CAFile: file}, []tls.Certificate{theirs.sign(t, "apiserver")}, "unknown certificate authority"},
		{"the common name", Clients{CAFile: file, Names: []string{"apiserver"}}, []tls.Certificate{ours.sign(t, "apiserver")}, ""},
		{"a DNS name", Clients{CAFile: file, Names: []string{"apiserver"}}, []tls.Certificate{ours.sign(t, "x", "y", "apiserver")}, ""},
		{"another name", Clients{CAFile: file, Names: []string{"apiserver"}}, []tls.Certificate{ours.sign(t, "kubelet")}, "bad certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantRefused(t, handshake(t, &c.clients, c.shows), c.refused)
		})
	}
	rotated := Clients{CAFile: file}
	if err := rotated.Check(); err != nil {
		t.Error(err)
	}
	theirs.write(t, file)
	wantRefused(t, handshake(t, &rotated, []tls.Certificate{theirs.sign(t, "apiserver")}), "")
	wantRefused(t, handshake(t, &rotated, []tls.Certificate{ours.sign(t, "apiserver")}), "unknown certificate authority")
}

// handshake is what a client meets that shows these certificates.
func handshake(t *testing.T, c *Clients, shows []tls.Certificate) error {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	own := newSigner(t).sign(t, "server")
	server.TLS = c.Require(TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &own, nil }))
	server.StartTLS()
	defer server.Close()
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: shows, InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func wantRefused(t *testing.T, err error, why string) {
	t.Helper()
	if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, want %q", err, why)
	}
}

// TestClientsCheck: flags that would refuse everybody, or nobody.
func TestClientsCheck(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		clients Clients
		want    string
	}{
		{Clients{Names: []string{"a"}}, "--admission-client-names needs --admission-client-ca-file, which signs the certificates"},
		{Clients{CAFile: empty}, "--admission-client-ca-file " + empty + ": there is no certificate in it"},
		{Clients{CAFile: empty + "/no"}, "--admission-client-ca-file: open " + empty + "/no: not a directory"},
	} {
		if err := c.clients.Check(); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
