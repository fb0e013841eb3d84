package certs

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// configuration is what matters here of the two kinds.
type configuration struct {
	kind    string
	version string
	bundles map[string][]byte // by webhook
	write   func(ctx context.Context, patch []byte) error
}

// configurations returns those that exist.
func (i *Injector) configurations() (found []configuration) {
	if m, there := i.mutating.get(); there {
		found = append(found, i.ofMutating(m))
	}
	if v, there := i.validating.get(); there {
		found = append(found, i.ofValidating(v))
	}
	return found
}

func (i *Injector) ofMutating(m *admissionv1.MutatingWebhookConfiguration) configuration {
	c := configuration{kind: "MutatingWebhookConfiguration", version: m.ResourceVersion, bundles: map[string][]byte{}}
	for _, w := range m.Webhooks {
		c.bundles[w.Name] = w.ClientConfig.CABundle
	}
	c.write = func(ctx context.Context, patch []byte) error {
		_, err := i.Webhooks.MutatingWebhookConfigurations().Patch(ctx, m.Name, types.StrategicMergePatchType, patch, injecting())
		return err
	}
	return c
}

func (i *Injector) ofValidating(v *admissionv1.ValidatingWebhookConfiguration) configuration {
	c := configuration{kind: "ValidatingWebhookConfiguration", version: v.ResourceVersion, bundles: map[string][]byte{}}
	for _, w := range v.Webhooks {
		c.bundles[w.Name] = w.ClientConfig.CABundle
	}
	c.write = func(ctx context.Context, patch []byte) error {
		_, err := i.Webhooks.ValidatingWebhookConfigurations().Patch(ctx, v.Name, types.StrategicMergePatchType, patch, injecting())
		return err
	}
	return c
}

func injecting() metav1.PatchOptions { return metav1.PatchOptions{FieldManager: injectorManager} }

// patch writes the bundles of one configuration that have to change. It names the
// version that they were read from: whoever was faster may know more.
func (i *Injector) patch(ctx context.Context, c configuration, current *x509.Certificate) error {
	var webhooks []map[string]any
	for name, present := range c.bundles {
		wanted := bundle(present, current, time.Now(), i.LeafDuration)
		if string(wanted) != string(present) {
			webhooks = append(webhooks, map[string]any{"name": name, "clientConfig": map[string]any{"caBundle": wanted}})
		}
	}
	if len(webhooks) == 0 {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": c.version}, "webhooks": webhooks})
	if err != nil {
		return fmt.Errorf("injecting the CA into the %s: %w", c.kind, err)
	}
	err = c.write(ctx, data)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // an event will follow
	}
	if err != nil {
		return fmt.Errorf("injecting the CA into the %s: %w", c.kind, err)
	}
	klog.FromContext(ctx).V(2).Info("Injected the CA", "kind", c.kind, "name", i.Configuration, "webhooks", len(webhooks))
	return nil
}
