package certs

import (
	"fmt"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// SelfManagedOptions say where the CA is kept, and what it signs.
type SelfManagedOptions struct {
	REST *rest.Config
	// SecretNamespace and SecretName of the CA, which all replicas share.
	SecretNamespace, SecretName string
	// DNSNames by which clients call the server.
	DNSNames []string
	// Configuration is the name of the MutatingWebhookConfiguration and of the
	// ValidatingWebhookConfiguration that shall trust the CA.
	Configuration string
	// CADuration and LeafDuration are how long a CA and a certificate are valid; 0:
	// a year and a week. Each is renewed when two thirds of it are over.
	CADuration, LeafDuration time.Duration
}

// SelfManaged serves certificates of a CA of our own. Whichever replica finds the
// CA missing or old makes a new one; the others follow.
func SelfManaged(o SelfManagedOptions) (*Source, error) {
	if o.CADuration == 0 {
		o.CADuration = 365 * 24 * time.Hour
	}
	if o.LeafDuration == 0 {
		o.LeafDuration = 7 * 24 * time.Hour
	}
	secrets, err := corev1client.NewForConfig(o.REST)
	if err != nil {
		return nil, fmt.Errorf("making a client for the serving certificate: %w", err)
	}
	webhooks, err := admissionclient.NewForConfig(o.REST)
	if err != nil {
		return nil, fmt.Errorf("making a client for the serving certificate: %w", err)
	}
	injector := &Injector{
		Secrets: secrets, SecretNamespace: o.SecretNamespace, SecretName: o.SecretName,
		Webhooks: webhooks, Configuration: o.Configuration, LeafDuration: o.LeafDuration,
	}
	s := of(&servertls.DynamicSource{
		DNSNames:  o.DNSNames,
		Authority: &authority{secrets: secrets, namespace: o.SecretNamespace, name: o.SecretName, duration: o.CADuration, leafDuration: o.LeafDuration},
	})
	s.parts = append(s.parts, injector.Run)
	s.trusted = injector.trusted
	return s, nil
}
