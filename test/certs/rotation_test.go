//go:build cluster

package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Two replicas share a CA. Their certificates are renewed, the CA is deleted,
// spoilt, and gets old: no request fails.
func TestCertificatesAndTheirCAChangeUnderLoad(t *testing.T) {
	r := newRig(t)
	one, two := r.start(true), r.start(false)
	replicas := []replica{one, two}
	all := func(check func(replica) bool) bool { return check(one) && check(two) }
	if err := r.register(one, two); err != nil {
		t.Fatal(err)
	}
	r.wait("both are ready", func() bool { return all(func(p replica) bool { return p.Ready() }) })
	r.wait("the API server trusts them", func() bool { return r.request(t.Context()) == nil })
	first := r.ca()
	if !all(func(p replica) bool { return p.serves(first) }) {
		t.Error("they do not share the CA of the Secret")
	}

	stop := r.load(8)
	for range 2 {
		for _, p := range replicas {
			before := p.serial()
			r.wait("its certificate is renewed", func() bool { return p.serial() != before })
		}
	}

	// follow waits until both serve certificates of another CA than before.
	follow := func(before *x509.Certificate) *x509.Certificate {
		t.Helper()
		r.wait("there is another CA, and both serve with it", func() bool {
			now := r.ca()
			return now != nil && !now.Equal(before) && all(func(p replica) bool { return p.serves(now) && p.Ready() })
		})
		return r.ca()
	}
	secrets := r.Kube.CoreV1().Secrets(r.NS)
	if err := secrets.Delete(t.Context(), secret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := follow(first)
	if _, err := secrets.Patch(t.Context(), secret, types.MergePatchType, []byte(`{"data":{"ca.crt":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	third := follow(second)
	last := follow(third) // it got old

	r.wait("nothing but the last CA is trusted", func() bool {
		want := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: last.Raw})
		m, err := r.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), r.NS, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), r.NS, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Equal(m.Webhooks[0].ClientConfig.CABundle, want) && bytes.Equal(v.Webhooks[0].ClientConfig.CABundle, want)
	})
	count, err := stop()
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d requests", count)

	// A replica that starts now joins the others.
	joined := r.start(false)
	r.wait("the new one is ready", joined.Ready)
	if !joined.serves(r.ca()) {
		t.Error("the new replica does not share the CA")
	}
	// Whoever registers again leaves the trust as it is.
	if err := r.register(one, two); err != nil {
		t.Fatal(err)
	}
	if err := r.request(t.Context()); err != nil {
		t.Error(err)
	}
}
