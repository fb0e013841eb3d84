package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"os"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
)

// FileOptions name the files of a certificate, in PEM.
type FileOptions struct {
	// CertFile has the certificate, followed by those between it and the CA.
	CertFile string
	KeyFile  string
	// CAFile has the CAs that signed it; empty: nobody here has to know.
	CAFile string
	// Every is how often to look for a change; 0: every 10 seconds. A kubelet takes
	// up to a minute to change the files of a mounted Secret.
	Every time.Duration
}

// Files serves a certificate from files, and takes over what they change to. It
// returns an error if they are of no use now. When they become so later, the
// certificate that is served stays, and the log says why.
func Files(o FileOptions) (*Source, error) {
	pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("--tlsCertFile %s with --tlsKeyFile %s: %w", o.CertFile, o.KeyFile, err)
	}
	if o.CAFile != "" {
		if err := signedBy(pair, o.CAFile); err != nil {
			return nil, err
		}
	}
	return of(&servertls.FileCertificateSource{
		CertPath: o.CertFile, KeyPath: o.KeyFile, UpdateInterval: o.Every,
		// To end the program would take from users the certificate that still works.
		MaxFailures: math.MaxInt,
	}), nil
}

func signedBy(pair tls.Certificate, caFile string) error {
	bundle, err := os.ReadFile(caFile)
	if err != nil {
		return fmt.Errorf("--tlsCAFile: %w", err)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("--tlsCAFile %s: there is no certificate in it", caFile)
	}
	for _, der := range pair.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("--tlsCertFile: %w", err)
		}
		between.AddCert(c)
	}
	// An expired certificate may be on its way to be renewed: only who signed it matters.
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: pair.Leaf.NotAfter})
	if err != nil {
		return fmt.Errorf("--tlsCAFile %s is not what signed the certificate: %w", caFile, err)
	}
	return nil
}
