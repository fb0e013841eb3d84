// Package pki makes a cluster's own certificate authorities, certificates, service account key and kubeconfigs.
//
// All of it lives in one directory as NAME.crt and NAME.key. What is there stays as it is, so asking twice is free.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"tkestack.io/tapp/devcluster/state"
)

const (
	lifetime = 10 * 365 * 24 * time.Hour // no cluster lives that long, and none shall end by this
	skew     = time.Hour                 // the clock may be set back a little
)

// Authority signs certificates.
type Authority struct {
	dir  string
	name string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Request describes a certificate. It serves clients and servers alike.
type Request struct {
	Name          string // of the files
	CommonName    string // the user, for a client
	Organizations []string
	DNSNames      []string
	Addresses     []netip.Addr
}

// Open loads the authority called name from dir, or makes it.
func Open(dir, name string) (*Authority, error) {
	a := &Authority{dir: dir, name: name}
	err := a.load()
	if errors.Is(err, fs.ErrNotExist) {
		err = a.create()
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return a, nil
}

func (a *Authority) load() error {
	certPEM, err := os.ReadFile(certPath(a.dir, a.name))
	if err != nil {
		return err
	}
	keyPEM, err := os.ReadFile(keyPath(a.dir, a.name))
	if err != nil {
		return err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return errors.New("not PEM")
	}
	if a.cert, err = x509.ParseCertificate(certBlock.Bytes); err != nil {
		return err
	}
	a.key, err = x509.ParseECPrivateKey(keyBlock.Bytes)
	return err
}

func (a *Authority) create() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := template(a.name)
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	a.key = key
	return write(a.dir, a.name, der, key)
}

// Ensure makes the certificate unless it is there and was signed by this authority for the same request.
func (a *Authority) Ensure(r Request) error {
	if a.issued(r) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", r.Name, err)
	}
	template, err := template(r.CommonName)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", r.Name, err)
	}
	template.Subject.Organization = r.Organizations
	template.DNSNames, template.IPAddresses = r.DNSNames, r.addresses()
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", r.Name, err)
	}
	return write(a.dir, r.Name, der, key)
}

func (a *Authority) issued(r Request) bool {
	data, err := os.ReadFile(certPath(a.dir, r.Name))
	if err != nil {
		return false
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || cert.CheckSignatureFrom(a.cert) != nil || time.Now().After(cert.NotAfter) || cert.Subject.CommonName != r.CommonName {
		return false
	}
	for _, ip := range r.addresses() {
		if cert.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	_, err = os.Stat(keyPath(a.dir, r.Name))
	return err == nil
}

func (r Request) addresses() []net.IP {
	var ips []net.IP
	for _, a := range r.Addresses {
		ips = append(ips, a.AsSlice())
	}
	return ips
}

func template(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    time.Now().Add(-skew),
		NotAfter:     time.Now().Add(lifetime),
	}, nil
}

// write puts the certificate last: where it is, the key is too.
func write(dir, name string, der []byte, key *ecdsa.PrivateKey) error {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("key %s: %w", name, err)
	}
	if err := state.WriteFile(keyPath(dir, name), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600); err != nil {
		return err
	}
	return state.WriteFile(certPath(dir, name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func certPath(dir, name string) string { return filepath.Join(dir, name+".crt") }
func keyPath(dir, name string) string  { return filepath.Join(dir, name+".key") }
