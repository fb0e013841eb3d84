package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestTLS12IsRefused(t *testing.T) {
	now := time.Now()
	authority := newCA(t, "test", now.Add(-time.Hour), now.Add(time.Hour))
	pair := authority.pair(t, 1, now.Add(-time.Hour), now.Add(time.Hour))
	address := serve(t, &Source{latest: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair, nil }})
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)
	_, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: hostname, MaxVersion: tls.VersionTLS12})
	if err == nil || err.Error() != "remote error: tls: protocol version not supported" {
		t.Error(err)
	}
	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: hostname, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	if state := c.ConnectionState(); state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "h2" {
		t.Errorf("version %x, protocol %s", state.Version, state.NegotiatedProtocol)
	}
	_ = c.Close()
}

// A new certificate is served when clients have trusted it for a while.
func TestWhenANewCertificateIsServed(t *testing.T) {
	now := time.Now()
	authority := newCA(t, "test", now.Add(-time.Hour), now.Add(24*time.Hour))
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		oldUntil, newFrom time.Time
		since             time.Time // zero: not trusted
		want              int64
		ready             bool
	}{
		"trusted, and old enough":    {now.Add(time.Hour), ago(2 * time.Minute), ago(2 * time.Minute), 2, true},
		"a moment old":               {now.Add(time.Hour), ago(time.Second), ago(time.Hour), 1, true},
		"trusted since a moment":     {now.Add(time.Hour), ago(time.Hour), ago(time.Second), 1, true},
		"not trusted":                {now.Add(time.Hour), ago(time.Hour), time.Time{}, 1, true},
		"not trusted, but the last":  {ago(time.Second), ago(time.Hour), time.Time{}, 2, false},
		"a moment old, but the last": {ago(time.Second), ago(time.Second), ago(time.Hour), 2, true},
		"trusted where nobody calls": {now.Add(time.Hour), ago(2 * time.Minute), time.Unix(0, 0), 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			first := authority.pair(t, 1, ago(time.Hour), c.oldUntil)
			latest := authority.pair(t, 2, c.newFrom, now.Add(time.Hour))
			s := &Source{
				latest:  func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return latest, nil },
				serving: first,
				trusted: func(leaf *x509.Certificate) (time.Time, bool) {
					if leaf.SerialNumber.Int64() == 1 {
						return ago(time.Hour), true
					}
					return c.since, !c.since.IsZero()
				},
			}
			got, err := s.GetCertificate(nil)
			if err != nil || got.Leaf.SerialNumber.Int64() != c.want || s.Ready() != c.ready {
				t.Errorf("certificate %v, ready %v, %v", got.Leaf.SerialNumber, s.Ready(), err)
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	now := time.Now()
	authority := newCA(t, "test", now.Add(-time.Hour), now.Add(time.Hour))
	var pair *tls.Certificate
	s := &Source{latest: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if pair == nil {
			return nil, errors.New("none yet")
		}
		return pair, nil
	}}
	if s.Ready() || testutil.ToFloat64(s.Collector()) != 0 {
		t.Error("there is none")
	}
	pair = authority.pair(t, 1, now.Add(-time.Hour), now.Add(-time.Minute))
	if s.Ready() || testutil.ToFloat64(s.Collector()) != float64(now.Add(-time.Minute).Unix()) {
		t.Error("it has expired: ", testutil.ToFloat64(s.Collector()))
	}
	pair = authority.pair(t, 2, now.Add(-time.Hour), now.Add(time.Minute))
	if !s.Ready() || testutil.ToFloat64(s.Collector()) != float64(now.Add(time.Minute).Unix()) {
		t.Error("it is valid: ", testutil.ToFloat64(s.Collector()))
	}
}
