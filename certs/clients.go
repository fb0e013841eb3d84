package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"tkestack.io/tapp/process"
)

// Clients says who may call. Without a CAFile everybody may.
type Clients struct {
	// CAFile has the CAs that sign the certificates of clients, in PEM. It is read at
	// each handshake, so that a new CA needs no restart.
	CAFile string
	// Names of the clients, as their certificates have them: a common name or a DNS
	// name. Empty: all that the CA has signed.
	Names []string
}

// Flags fill it.
func (c *Clients) Flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "admission-client-ca-file", Usage: "`path` of the CA of the API server's client certificate; callers without a certificate of it are refused", Destination: &c.CAFile},
		&cli.GenericFlag{Name: "admission-client-names", Usage: "common or DNS `names` that the client certificate may have, with commas between them; by default any", Value: (*process.Names)(&c.Names)},
	}
}

// Check says what is wrong with it now.
func (c *Clients) Check() error {
	if c.CAFile == "" {
		if len(c.Names) > 0 {
			return errors.New("--admission-client-names needs --admission-client-ca-file, which signs the certificates")
		}
		return nil
	}
	_, err := c.pool()
	return err
}

// Require has a server refuse the handshakes of all others.
func (c *Clients) Require(server *tls.Config) *tls.Config {
	if c.CAFile == "" {
		return server
	}
	required := server.Clone()
	required.ClientAuth = tls.RequireAndVerifyClientCert
	required.VerifyConnection = c.verify
	outer := server.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := c.pool()
		if err != nil {
			return nil, err
		}
		current := required.Clone()
		current.ClientCAs = pool
		return current, nil
	}
	return outer
}

func (c *Clients) pool() (*x509.CertPool, error) {
	bundle, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("--admission-client-ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("--admission-client-ca-file %s: there is no certificate in it", c.CAFile)
	}
	return pool, nil
}

// verify the name of a client whose certificate is verified.
func (c *Clients) verify(s tls.ConnectionState) error {
	if len(c.Names) == 0 {
		return nil
	}
	leaf := s.PeerCertificates[0]
	for _, name := range append([]string{leaf.Subject.CommonName}, leaf.DNSNames...) {
		if slices.Contains(c.Names, name) {
			return nil
		}
	}
	return fmt.Errorf("the client is %q, whom --admission-client-names does not name", leaf.Subject.CommonName)
}
