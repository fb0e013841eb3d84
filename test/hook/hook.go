// Package hook puts the webhooks and the policies of gates in front of a cluster, as the
// chart renders them. The webhooks are served in the process of the tests.
package hook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/webhook"
)

// validity of the certificate.
const validity = 24 * time.Hour

// Server are webhooks that are served.
type Server struct {
	cluster *cluster.Cluster
	applied string // what the chart rendered, as it was applied
	stop    context.CancelFunc
	ended   chan error
}

// Start serves the webhooks, and applies what the chart in a directory renders with these
// values (as flags of helm), but with the address of this process. It is in force a moment
// later: see Server.Stop for its end.
func Start(ctx context.Context, c *cluster.Cluster, chart string, flags ...string) (*Server, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s := &Server{cluster: c, ended: make(chan error, 1)}
	config := webhook.Defaults()
	config.ShutdownDelay = 0
	config.REST, config.Listener, config.Registry, config.Certificates, config.Version = c.Config, listener, prometheus.NewRegistry(), certificate, "test"
	var serving context.Context
	serving, s.stop = context.WithCancel(ctx)
	go func() { s.ended <- webhook.Run(serving, config) }()
	if s.applied, err = render(ctx, c, chart, certificate.authority, "https://"+listener.Addr().String(), flags); err == nil {
		var out string
		if out, err = c.Command(ctx, s.applied, "kubectl", "apply", "--server-side", "--force-conflicts", "--filename", "-"); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop(ctx))
	}
	return s, nil
}

// Stop takes them away.
func (s *Server) Stop(ctx context.Context) error {
	var err error
	if s.applied != "" {
		var out string
		if out, err = s.cluster.Command(ctx, s.applied, "kubectl", "delete", "--ignore-not-found", "--filename", "-"); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	s.stop()
	return errors.Join(err, <-s.ended)
}

// certificate is its own authority.
type certificate struct {
	tls.Certificate
	authority []byte
}

func (c *certificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &c.Certificate, nil
}

func (c *certificate) Ready() bool { return true }

func selfSigned() (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certificate{
		Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		authority:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

// render the chart's webhooks and gates.
func render(ctx context.Context, c *cluster.Cluster, chart string, authority []byte, url string, flags []string) (string, error) {
	dir, err := os.MkdirTemp("", "hook")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bundle := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(bundle, authority, 0o600); err != nil {
		return "", err
	}
	args := []string{"template", "tapp", chart, "--namespace", "tapp-system", "--api-versions", "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
		"--show-only", "templates/webhooks.yaml", "--show-only", "templates/gates.yaml",
		"--set", "tls.mode=provided", "--set", "tls.provided.secretName=none", "--set-file", "tls.provided.caBundle=" + bundle}
	out, err := c.Command(ctx, "", "helm", append(args, flags...)...)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return direct(out, url)
}
