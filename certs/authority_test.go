package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	cmauthority "github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

func newAuthority(objects ...runtime.Object) (*authority, *fake.Clientset) {
	client := fake.NewClientset(objects...)
	return &authority{secrets: client.CoreV1(), namespace: "kube-system", name: "tapp-ca", duration: 24 * time.Hour, leafDuration: time.Hour}, client
}

// run it until the test ends.
func (a *authority) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// leafOf asks for a certificate as DynamicSource does.
func leafOf(t *testing.T, a *authority) (*x509.Certificate, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return a.Sign(&x509.Certificate{PublicKeyAlgorithm: x509.ECDSA, PublicKey: key.Public(), DNSNames: []string{hostname}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

func stored(t *testing.T, client *fake.Clientset) *corev1.Secret {
	t.Helper()
	s, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), "tapp-ca", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The authority makes a CA, and signs by it; when the Secret has another one, it signs by
// that one and says so.
func TestAuthority(t *testing.T) {
	a, client := newAuthority()
	rotated := make(chan struct{}, 1)
	a.WatchRotation(rotated)
	if _, err := leafOf(t, a); !errors.Is(err, cmauthority.ErrCertificateNotAvailable) {
		t.Errorf("before there is a CA: %v", err)
	}
	a.run(t)
	<-rotated
	s := stored(t, client)
	if s.Labels["app.kubernetes.io/managed-by"] != "tapp" || s.Annotations["cert-manager.io/allow-direct-injection"] != "true" {
		t.Errorf("marks: %v, %v", s.Labels, s.Annotations)
	}
	first, err := read(s, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if life := first.ca.NotAfter.Sub(first.ca.NotBefore); life != 24*time.Hour || first.ca.Subject.CommonName != "tapp-ca" {
		t.Errorf("the CA %v lives %s", first.ca.Subject, life)
	}
	leaf, err := leafOf(t, a)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(first.ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: hostname}); err != nil {
		t.Error(err)
	}
	if life := leaf.NotAfter.Sub(leaf.NotBefore); life != time.Hour || leaf.IsCA {
		t.Errorf("a certificate lives %s, CA: %v", life, leaf.IsCA)
	}

	other, _ := newAuthority()
	data, err := other.made()
	if err != nil {
		t.Fatal(err)
	}
	s.Data = data
	if _, err := client.CoreV1().Secrets("kube-system").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-rotated
	second, err := read(stored(t, client), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if leaf, err = leafOf(t, a); err != nil || leaf.CheckSignatureFrom(second.ca) != nil {
		t.Errorf("it does not sign by the other replica's: %v", err)
	}
	a.StopWatchingRotation(rotated)
	if len(a.watches) > 0 {
		t.Error("it is told still")
	}
}

// What is of no use as a CA is replaced, and the rest of the Secret stays.
func TestAuthorityReplaces(t *testing.T) {
	made := func(t *testing.T, duration time.Duration) map[string][]byte {
		a, _ := newAuthority()
		a.duration = duration
		data, err := a.made()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T) map[string][]byte
		why   string
	}{
		"empty": {func(*testing.T) map[string][]byte { return nil }, "reading it: tls: failed to find any PEM data in certificate input"},
		"without ca.crt": {func(t *testing.T) map[string][]byte {
			data := made(t, time.Hour)
			delete(data, "ca.crt")
			return data
		}, "ca.crt and tls.crt differ"},
		"another key": {func(t *testing.T) map[string][]byte {
			data := made(t, time.Hour)
			data["tls.key"] = made(t, time.Hour)["tls.key"]
			return data
		}, "reading it: tls: private key does not match public key"},
		"no CA": {func(t *testing.T) map[string][]byte {
			now := time.Now()
			certificate, key := newCA(t, "one", now, now.Add(time.Hour)).issue(t, 1, now, now.Add(time.Hour))
			return map[string][]byte{"tls.crt": certificate, "ca.crt": certificate, "tls.key": key}
		}, "it is no CA"},
		"old": {func(t *testing.T) map[string][]byte { return made(t, -time.Hour) }, "two thirds of it are over"},
	} {
		t.Run(name, func(t *testing.T) {
			s := secretOf(ca{})
			s.Data = c.spoil(t)
			if _, err := read(s, time.Now()); err == nil || err.Error() != c.why {
				t.Errorf("%v, want %s", err, c.why)
			}
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data["mine"] = []byte("stays")
			a, client := newAuthority(s)
			rotated := make(chan struct{}, 1)
			a.WatchRotation(rotated)
			a.run(t)
			<-rotated
			now := stored(t, client)
			if _, err := read(now, time.Now()); err != nil || string(now.Data["mine"]) != "stays" || bytes.Equal(now.Data["tls.crt"], s.Data["tls.crt"]) {
				t.Errorf("%v: %v", err, now.Data)
			}
		})
	}
}

// Two thirds of its life a CA is signed with, and no certificate outlives it.
func TestAuthorityGetsOld(t *testing.T) {
	a, _ := newAuthority()
	a.duration = 30 * time.Minute
	data, err := a.made()
	if err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{Data: data}
	start := time.Now()
	if a.current, err = read(s, start.Add(19*time.Minute)); err != nil {
		t.Error(err)
	}
	if _, err := read(s, start.Add(21*time.Minute)); err == nil {
		t.Error("it is not renewed")
	}
	leaf, err := leafOf(t, a)
	if err != nil || !leaf.NotAfter.Equal(a.current.ca.NotAfter) {
		t.Errorf("it outlives its CA: %v, %v", leaf, err)
	}
	a.duration = -time.Minute
	if s.Data, err = a.made(); err != nil {
		t.Fatal(err)
	}
	a.current, _ = read(s, start.Add(-time.Hour))
	if _, err := leafOf(t, a); err == nil || err.Error() != "the CA has expired, and is not renewed yet" {
		t.Errorf("by a CA that has expired: %v", err)
	}
}

// Another replica's CA is taken where both make one at once, and what cannot be written is
// tried again.
func TestAuthorityIsNotAlone(t *testing.T) {
	a, client := newAuthority()
	other, _ := newAuthority()
	data, err := other.made()
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	client.PrependReactor("create", "secrets", func(ktesting.Action) (bool, runtime.Object, error) {
		if tries++; tries == 1 {
			return true, nil, errors.New("etcd is away")
		}
		s := secretOf(ca{})
		s.Data = data
		if err := client.Tracker().Add(s); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewAlreadyExists(corev1.Resource("secrets"), "tapp-ca")
	})
	rotated := make(chan struct{}, 1)
	a.WatchRotation(rotated)
	a.run(t)
	<-rotated
	if leaf, err := leafOf(t, a); err != nil || leaf.CheckSignatureFrom(mustRead(t, data).ca) != nil {
		t.Errorf("it does not sign by the other replica's: %v", err)
	}
}

func mustRead(t *testing.T, data map[string][]byte) keyPair {
	t.Helper()
	out, err := read(&corev1.Secret{Data: data}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return out
}
