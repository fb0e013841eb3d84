//go:build cluster

package install

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// strangers is how many refusals of our certificate in a row are more than a configuration on its way.
const strangers = 30

// judged waits until admission answers what check wants.
//
// The API server can go on with webhooks that it read before: two updates of a configuration in a
// row, as by Helm and by cert-manager, race in its cache (k8s.io/apiserver, configurationsCache).
// docs/operations.md has the way out, and so has this.
func (r *rig) judged(what string, check func() error) {
	r.Helper()
	refused := 0
	r.Eventually(what, func(ctx context.Context) error {
		err := check()
		if err == nil || !strings.Contains(err.Error(), "x509: ") {
			refused = 0
			return err
		}
		if refused++; refused != strangers {
			return err
		}
		if wrong := r.bundles(ctx); wrong != nil {
			return fmt.Errorf("%w: %w", wrong, err)
		}
		r.Log("the API server goes on with an older configuration of webhooks: " +
			r.Kubectl("annotate", "--overwrite", "validatingwebhookconfiguration,mutatingwebhookconfiguration", releaseName, "example.com/read-again=1"))
		return err
	})
}

// bundles returns nil if all webhooks of the release have the same CA.
func (r *rig) bundles(ctx context.Context) error {
	validating, err := r.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, releaseName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	mutating, err := r.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, releaseName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	configs := map[string]admissionv1.WebhookClientConfig{}
	for i := range validating.Webhooks {
		configs[validating.Webhooks[i].Name] = validating.Webhooks[i].ClientConfig
	}
	for i := range mutating.Webhooks {
		configs[mutating.Webhooks[i].Name] = mutating.Webhooks[i].ClientConfig
	}
	first := validating.Webhooks[0].ClientConfig.CABundle
	for name, config := range configs {
		if len(config.CABundle) == 0 || !bytes.Equal(config.CABundle, first) {
			return fmt.Errorf("webhook %s has no CA, or another one", name)
		}
	}
	return nil
}
