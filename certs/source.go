// Package certs gives the admission server its certificate and keeps it current,
// without a restart and without a failed request. It knows three ways:
//
//	certManager, provided   Files: a mounted Secret, read again when it changes
//	selfManaged             SelfManaged: a CA of our own, kept in a Secret that all
//	                        replicas share, and certificates signed by it
//
// The certificates come from cert-manager's packages. What is added here is that
// clients always trust what is served: the CA gets into the caBundle of the webhook
// configurations before a certificate of it is served, and stays there as long as
// one may be (Injector).
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// maxOverlap is how long a new certificate waits beside the one that is served:
// clients' clocks differ from ours, and so does when they hear of a new CA.
const maxOverlap = time.Minute

// Source of the certificate that a server presents.
type Source struct {
	// latest is the certificate that shall be served in the end.
	latest func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// parts run until their context ends.
	parts []func(context.Context) error
	// trusted says since when all clients trust this certificate, and false if they
	// do not. Nil: they always do.
	trusted func(*x509.Certificate) (time.Time, bool)

	mu      sync.Mutex
	serving *tls.Certificate
}

// Run keeps the certificate current until ctx ends, and returns nil then.
func (s *Source) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range s.parts {
		group.Go(func() error { return part(ctx) })
	}
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("keeping the serving certificate: %w", err)
	}
	return nil
}

// GetCertificate is that of tls.Config. Its error says that there is none yet.
func (s *Source) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	latest, err := s.latest(hello)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil || s.serving != latest && s.due(latest.Leaf) {
		s.serving = latest
	}
	return s.serving, nil
}

// due says whether leaf is to take the place of the certificate that is served.
func (s *Source) due(leaf *x509.Certificate) bool {
	now := time.Now()
	if s.trusted == nil || now.After(s.serving.Leaf.NotAfter) {
		return true
	}
	since, ok := s.trusted(leaf)
	if leaf.NotBefore.After(since) {
		since = leaf.NotBefore
	}
	overlap := min(maxOverlap, leaf.NotAfter.Sub(leaf.NotBefore)/10)
	return ok && now.Sub(since) >= overlap
}

// Ready says whether there is a certificate that clients accept.
func (s *Source) Ready() bool {
	certificate, err := s.GetCertificate(nil)
	if err != nil || time.Now().After(certificate.Leaf.NotAfter) {
		return false
	}
	if s.trusted == nil {
		return true
	}
	_, ok := s.trusted(certificate.Leaf)
	return ok
}

// Expiry is when the certificate that is served expires; zero if there is none.
func (s *Source) Expiry() time.Time {
	certificate, err := s.GetCertificate(nil)
	if err != nil {
		return time.Time{}
	}
	return certificate.Leaf.NotAfter
}

// Collector is the metric of Expiry.
func (s *Source) Collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tapp_certificate_expiry_timestamp_seconds",
		Help: "When the certificate that admission is served with expires, in seconds since 1970; 0 if there is none.",
	}, func() float64 {
		if expiry := s.Expiry(); !expiry.IsZero() {
			return float64(expiry.Unix())
		}
		return 0
	})
}

// TLSConfig is how to serve with a certificate, for example Source.GetCertificate.
func TLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: certificate,
	}
}

// HTTP1 leaves out HTTP/2, for listeners below a server that does not know of TLS.
func HTTP1(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.NextProtos = []string{"http/1.1"}
	return c
}

// of makes a Source of one of cert-manager's.
func of(source servertls.CertificateSource) *Source {
	return &Source{latest: source.GetCertificate, parts: []func(context.Context) error{source.Start}}
}
