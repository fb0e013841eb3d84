package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// ephemeralDuration is how long a certificate that is kept nowhere is valid.
const ephemeralDuration = 90 * 24 * time.Hour

// Ephemeral serves a self-signed certificate that is made at the start and kept in memory
// alone: for servers whose clients are told not to verify it, or its fingerprint, which is
// logged. names are DNS names and IP addresses.
func Ephemeral(names ...string) *Source { return of(&ephemeral{names: names}) }

// ephemeral is a source of certificates as cert-manager's packages have them.
type ephemeral struct {
	names []string

	mu      sync.Mutex
	current *tls.Certificate
}

// GetCertificate makes another one when two thirds of the validity of the last are over.
func (e *ephemeral) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != nil && time.Until(e.current.Leaf.NotAfter) > ephemeralDuration/3 {
		return e.current, nil
	}
	made, err := selfSigned(e.names, time.Now())
	if err != nil {
		return nil, err
	}
	e.current = made
	return made, nil
}

// Start has nothing to do: certificates are made when they are asked for.
func (e *ephemeral) Start(ctx context.Context) error {
	certificate, err := e.GetCertificate(nil)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(certificate.Certificate[0])
	klog.FromContext(ctx).Info("Serving with a self-signed certificate of this run; give --tlsCertFile and --tlsKeyFile for one that clients can verify", "sha256", hex.EncodeToString(sum[:]))
	<-ctx.Done()
	return nil
}

// Healthy says whether there is a certificate.
func (e *ephemeral) Healthy() bool {
	_, err := e.GetCertificate(nil)
	return err == nil
}

func selfSigned(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "tapp"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(ephemeralDuration),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
