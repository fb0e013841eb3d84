package certs

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
)

// Register creates the two configurations, or brings them to this version's, by
// server-side apply: a caBundle that they leave out stays as it is.
func Register(ctx context.Context, api admissionclient.AdmissionregistrationV1Interface, mutating *admissionv1.MutatingWebhookConfiguration, validating *admissionv1.ValidatingWebhookConfiguration) error {
	force := true
	options := metav1.PatchOptions{FieldManager: "tapp", Force: &force}

	mutating = mutating.DeepCopy()
	mutating.TypeMeta = metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"}
	data, err := json.Marshal(mutating)
	if err == nil {
		_, err = api.MutatingWebhookConfigurations().Patch(ctx, mutating.Name, types.ApplyPatchType, data, options)
	}
	if err != nil {
		return fmt.Errorf("registering the MutatingWebhookConfiguration %s: %w", mutating.Name, err)
	}

	validating = validating.DeepCopy()
	validating.TypeMeta = metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"}
	data, err = json.Marshal(validating)
	if err == nil {
		_, err = api.ValidatingWebhookConfigurations().Patch(ctx, validating.Name, types.ApplyPatchType, data, options)
	}
	if err != nil {
		return fmt.Errorf("registering the ValidatingWebhookConfiguration %s: %w", validating.Name, err)
	}
	return nil
}
