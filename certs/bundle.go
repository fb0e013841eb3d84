package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// bundle is what a caBundle that is now present shall become: it holds the current
// CA, and each other one by which a certificate that is served may be signed. It
// returns present itself if that will do.
//
// When the CA is replaced, certificates of the last one are served for a while; no
// longer than one is valid (leaf) after the current CA began. A CA that is younger
// than current was made by a replica that knows more than we do.
func bundle(present []byte, current *x509.Certificate, now time.Time, leaf time.Duration) []byte {
	had := parse(present)
	wanted := []*x509.Certificate{current}
	for _, ca := range had {
		younger := ca.NotBefore.After(current.NotBefore)
		inUse := now.Before(ca.NotAfter) && (younger || now.Before(current.NotBefore.Add(leaf)))
		if inUse && !contains(wanted, ca) {
			wanted = append(wanted, ca)
		}
	}
	if len(had) == len(wanted) && !slices.ContainsFunc(wanted, func(ca *x509.Certificate) bool { return !contains(had, ca) }) {
		return present
	}
	var out bytes.Buffer
	for _, ca := range wanted {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}) // a buffer takes all
	}
	return out.Bytes()
}

// parse returns the certificates of a PEM text, and leaves out what is none.
func parse(text []byte) []*x509.Certificate {
	var found []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, c)
		}
	}
	return found
}

func contains(all []*x509.Certificate, one *x509.Certificate) bool {
	return slices.ContainsFunc(all, one.Equal)
}
