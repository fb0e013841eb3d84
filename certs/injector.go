package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// injectorManager owns the fields that Injector writes.
const injectorManager = "tapp-certs"

// Injector keeps the CA of a Secret in the caBundle of all webhooks of the
// MutatingWebhookConfiguration and the ValidatingWebhookConfiguration of one name,
// as far as these exist. Every replica runs one: they want the same.
type Injector struct {
	Secrets                     corev1client.SecretsGetter
	SecretNamespace, SecretName string
	Webhooks                    admissionclient.AdmissionregistrationV1Interface
	Configuration               string
	// LeafDuration is how long a certificate of the CA is valid at most.
	LeafDuration time.Duration

	secret     *watched[*corev1.Secret]
	mutating   *watched[*admissionv1.MutatingWebhookConfiguration]
	validating *watched[*admissionv1.ValidatingWebhookConfiguration]

	mu sync.Mutex
	// bundled are the CAs that are in every caBundle, and since when. The API server
	// hears of them no later than we do, but for moments.
	bundled []bundledCA
	synced  bool
}

type bundledCA struct {
	certificate *x509.Certificate
	since       time.Time
}

// Run injects until ctx ends.
func (i *Injector) Run(ctx context.Context) error {
	events := make(chan struct{}, 1)
	ended, err := i.watch(ctx, events)
	if err != nil {
		return err
	}
	defer ended()
	atEach(ctx, events, func() error {
		err := i.inject(ctx)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "CA not injected yet", "configuration", i.Configuration)
		}
		return err
	})
	return nil
}

// watch fills the caches of the few objects that matter, and reports their events.
func (i *Injector) watch(ctx context.Context, events chan<- struct{}) (ended func(), err error) {
	report := func() { announce(events) }
	i.secret = watchOne(i.Secrets.Secrets(i.SecretNamespace), cache.ObjectName{Namespace: i.SecretNamespace, Name: i.SecretName}, &corev1.Secret{}, report)
	name := cache.ObjectName{Name: i.Configuration}
	i.mutating = watchOne(i.Webhooks.MutatingWebhookConfigurations(), name, &admissionv1.MutatingWebhookConfiguration{}, report)
	i.validating = watchOne(i.Webhooks.ValidatingWebhookConfigurations(), name, &admissionv1.ValidatingWebhookConfiguration{}, report)
	return fill(ctx, i.secret.cache, i.mutating.cache, i.validating.cache)
}

// trusted says since when all configurations trust what leaf is signed by, and
// false if they do not. Where there is no configuration, nobody calls us.
func (i *Injector) trusted(leaf *x509.Certificate) (time.Time, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.synced {
		return time.Time{}, false
	}
	if i.bundled == nil {
		return time.Time{}, true
	}
	for _, ca := range i.bundled {
		if leaf.CheckSignatureFrom(ca.certificate) == nil {
			return ca.since, true
		}
	}
	return time.Time{}, false
}

// inject compares once, and writes what differs.
func (i *Injector) inject(ctx context.Context) error {
	configurations := i.configurations()
	i.note(configurations)
	secret, there := i.secret.get()
	if !there {
		return nil // it will be made, and be an event
	}
	cas := parse(secret.Data[corev1.TLSCertKey])
	if len(cas) == 0 {
		return nil // it will be replaced, and be an event
	}
	var errs []error
	for _, c := range configurations {
		errs = append(errs, i.patch(ctx, c, cas[0]))
	}
	return errors.Join(errs...)
}

// note remembers the CAs that are in every bundle.
func (i *Injector) note(configurations []configuration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.synced = true
	before := i.bundled
	i.bundled = nil
	first := true
	for _, c := range configurations {
		for _, text := range c.bundles {
			cas := parse(text)
			if first {
				i.bundled = make([]bundledCA, 0, len(cas))
				for _, ca := range cas {
					i.bundled = append(i.bundled, bundledCA{ca, since(before, ca)})
				}
				first = false
				continue
			}
			both := make([]bundledCA, 0, len(cas))
			for _, b := range i.bundled {
				if contains(cas, b.certificate) {
					both = append(both, b)
				}
			}
			i.bundled = both
		}
	}
}

func since(before []bundledCA, ca *x509.Certificate) time.Time {
	for _, b := range before {
		if b.certificate.Equal(ca) {
			return b.since
		}
	}
	return time.Now()
}
