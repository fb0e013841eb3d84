package certs

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	cmauthority "github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"github.com/cert-manager/cert-manager/pkg/util/pki"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// authority is a CA in a Secret, which signs what cert-manager's DynamicSource asks for.
// It does what the authority of that package does, whose client links those of all kinds
// of Kubernetes.
type authority struct {
	secrets         corev1client.SecretsGetter
	namespace, name string
	// duration of the CA, and of what it signs.
	duration, leafDuration time.Duration

	mu      sync.Mutex
	current keyPair
	watches []chan<- struct{}
}

// keyPair of a CA, in PEM and read.
type keyPair struct {
	certificate, key []byte
	ca               *x509.Certificate
	signer           crypto.Signer
}

// Run keeps the CA in its Secret, and renews it when two thirds of it are over, until ctx
// ends.
func (a *authority) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	secret := watchOne(a.secrets.Secrets(a.namespace), cache.ObjectName{Namespace: a.namespace, Name: a.name}, &corev1.Secret{}, func() { announce(changed) })
	ended, err := fill(ctx, secret.cache)
	if err != nil {
		return err
	}
	defer ended()
	atEach(ctx, changed, func() error {
		err := a.ensure(ctx, secret)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "There is no CA yet", "secret", klog.KRef(a.namespace, a.name))
		}
		return err
	})
	return nil
}

// WatchRotation has a channel told when the CA is another one.
func (a *authority) WatchRotation(to chan<- struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watches = append(a.watches, to)
}

// StopWatchingRotation ends that.
func (a *authority) StopWatchingRotation(to chan<- struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watches = slices.DeleteFunc(a.watches, func(c chan<- struct{}) bool { return c == to })
}

// Sign a certificate, which is valid from now on and no longer than the CA.
func (a *authority) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	a.mu.Lock()
	by := a.current
	a.mu.Unlock()
	if by.ca == nil {
		return nil, cmauthority.ErrCertificateNotAvailable
	}
	template.BasicConstraintsValid = true
	template.NotBefore = time.Now()
	template.NotAfter = template.NotBefore.Add(a.leafDuration)
	if by.ca.NotAfter.Before(template.NotBefore) {
		return nil, errors.New("the CA has expired, and is not renewed yet")
	}
	if by.ca.NotAfter.Before(template.NotAfter) {
		template.NotAfter = by.ca.NotAfter
	}
	_, signed, err := pki.SignCertificate(template, by.ca, template.PublicKey, by.signer)
	return signed, err
}

// ensure that there is a CA of use, and sign by it.
func (a *authority) ensure(ctx context.Context, secret *watched[*corev1.Secret]) error {
	stored, there := secret.get()
	if !there {
		return a.create(ctx)
	}
	now, why := read(stored, time.Now())
	if why != nil {
		klog.FromContext(ctx).V(2).Info("Making another CA", "why", why, "secret", klog.KObj(stored))
		return a.replace(ctx, stored)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !bytes.Equal(a.current.certificate, now.certificate) || !bytes.Equal(a.current.key, now.key) {
		a.current = now
		for _, to := range a.watches {
			announce(to)
		}
	}
	return nil
}

// read the CA of a Secret. An error says why another one is to be made.
func read(s *corev1.Secret, now time.Time) (keyPair, error) {
	out := keyPair{certificate: s.Data[corev1.TLSCertKey], key: s.Data[corev1.TLSPrivateKeyKey]}
	if !bytes.Equal(s.Data[cmmeta.TLSCAKey], out.certificate) {
		return out, fmt.Errorf("%s and %s differ", cmmeta.TLSCAKey, corev1.TLSCertKey)
	}
	pair, err := tls.X509KeyPair(out.certificate, out.key)
	if err != nil {
		return out, fmt.Errorf("reading it: %w", err)
	}
	signer, can := pair.PrivateKey.(crypto.Signer)
	switch {
	case !can || !pair.Leaf.IsCA:
		return out, errors.New("it is no CA")
	case pair.Leaf.NotAfter.Sub(now) < pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)/3:
		return out, errors.New("two thirds of it are over")
	}
	out.ca, out.signer = pair.Leaf, signer
	return out, nil
}

// create the Secret. Another replica may be faster, whose CA an event brings.
func (a *authority) create(ctx context.Context) error {
	data, err := a.made()
	if err != nil {
		return err
	}
	_, err = a.secrets.Secrets(a.namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.namespace, Name: a.name,
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "tapp"},
			Annotations: map[string]string{certmanager.AllowsInjectionFromSecretAnnotation: "true"},
		},
		Data: data,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("storing the CA: %w", err)
	}
	return nil
}

// replace what the Secret has, in the version that was read.
func (a *authority) replace(ctx context.Context, s *corev1.Secret) error {
	data, err := a.made()
	if err != nil {
		return err
	}
	s = s.DeepCopy()
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, value := range data {
		s.Data[key] = value
	}
	if _, err = a.secrets.Secrets(a.namespace).Update(ctx, s, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("storing the CA: %w", err)
	}
	return nil // a conflict is another replica's, and an event is on its way
}

// made is a new CA, by the keys of its Secret.
func (a *authority) made() (map[string][]byte, error) {
	key, err := pki.GenerateECPrivateKey(384)
	if err != nil {
		return nil, fmt.Errorf("making the CA's key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		PublicKeyAlgorithm: x509.ECDSA, Subject: pkix.Name{CommonName: "tapp-ca"}, NotBefore: now, NotAfter: now.Add(a.duration),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
	}
	certificate, _, err := pki.SignCertificate(template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the CA: %w", err)
	}
	encoded, err := pki.EncodePrivateKey(key, certmanager.PKCS8)
	if err != nil {
		return nil, fmt.Errorf("encoding the CA's key: %w", err)
	}
	return map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: encoded, cmmeta.TLSCAKey: certificate}, nil
}
