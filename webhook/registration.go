package webhook

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/certs"
)

const (
	// reviewTimeout is what the API server gives a review, in seconds.
	reviewTimeout = 10
	// registerRetry is how long to wait after a registration that failed.
	registerRetry = 2 * time.Second
)

// register applies the webhook configurations. It retries while the API server does
// not answer. An error means that it may not be done.
func (a *Admission) register(ctx context.Context) error {
	mutating, validating, err := a.configurations()
	if err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, registerRetry, true, func(ctx context.Context) (bool, error) {
		err := certs.Register(ctx, a.client, mutating, validating)
		switch {
		case apierrors.IsForbidden(err):
			return false, fmt.Errorf("this program may not register its webhooks: let it (create and patch on mutatingwebhookconfigurations and validatingwebhookconfigurations), or leave out --register-admission: %w", err)
		case err == nil || apierrors.IsInvalid(err):
			return true, err
		case ctx.Err() == nil:
			klog.FromContext(ctx).Error(err, "The webhooks are not registered yet; trying again", "after", registerRetry)
		}
		return false, nil
	})
	switch {
	case err == nil:
		klog.FromContext(ctx).Info("Registered the webhooks", "configuration", a.TLS.Configuration)
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// configurations are those of the chart.
func (a *Admission) configurations() (*admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration, error) {
	meta := metav1.ObjectMeta{Name: a.TLS.Configuration, Labels: map[string]string{"app.kubernetes.io/managed-by": "tapp"}}
	mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta}
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	for _, w := range a.server.webhooks {
		if !slices.Contains(a.Kinds, w.kind) {
			continue
		}
		client, err := a.clientConfig(w.Path)
		if err != nil {
			return nil, nil, err
		}
		if w.Mutates {
			mutating.Webhooks = append(mutating.Webhooks, a.mutatingWebhook(w, client))
		} else {
			validating.Webhooks = append(validating.Webhooks, a.validatingWebhook(w, client))
		}
	}
	return mutating, validating, nil
}

// namespaces selects those whose objects are reviewed.
func (a *Admission) namespaces() *metav1.LabelSelector {
	if a.Namespace == "" {
		return nil
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: a.Namespace}}
}

func (a *Admission) mutatingWebhook(w Webhook, client admissionv1.WebhookClientConfig) admissionv1.MutatingWebhook {
	return admissionv1.MutatingWebhook{
		Name: w.Name, ClientConfig: client, Rules: rulesOf(w), NamespaceSelector: a.namespaces(), MatchConditions: notDeleted(), ReinvocationPolicy: ptr.To(admissionv1.IfNeededReinvocationPolicy),
		FailurePolicy: ptr.To(admissionv1.Fail), MatchPolicy: ptr.To(admissionv1.Equivalent), SideEffects: ptr.To(admissionv1.SideEffectClassNone),
		TimeoutSeconds: ptr.To(int32(reviewTimeout)), AdmissionReviewVersions: []string{"v1"},
	}
}

func (a *Admission) validatingWebhook(w Webhook, client admissionv1.WebhookClientConfig) admissionv1.ValidatingWebhook {
	return admissionv1.ValidatingWebhook{
		Name: w.Name, ClientConfig: client, Rules: rulesOf(w), NamespaceSelector: a.namespaces(), MatchConditions: notDeleted(),
		FailurePolicy: ptr.To(admissionv1.Fail), MatchPolicy: ptr.To(admissionv1.Equivalent), SideEffects: ptr.To(admissionv1.SideEffectClassNone),
		TimeoutSeconds: ptr.To(int32(reviewTimeout)), AdmissionReviewVersions: []string{"v1"},
	}
}

// notDeleted leaves out what is being deleted: its finalizers can be removed whether
// or not a webhook answers.
func notDeleted() []admissionv1.MatchCondition {
	return []admissionv1.MatchCondition{{Name: "stays", Expression: "!has(object.metadata.deletionTimestamp)"}}
}

func rulesOf(w Webhook) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{w.Version.Group}, APIVersions: []string{w.Version.Version}, Resources: w.Resources,
			Scope: ptr.To(admissionv1.NamespacedScope)},
	}}
}

// clientConfig is how the API server calls: through the Service whose name is
// given as <service>.<namespace>.svc, or directly when it is any other name.
func (a *Admission) clientConfig(path string) (admissionv1.WebhookClientConfig, error) {
	name := a.TLS.DNSNames[0]
	if parts := strings.Split(name, "."); len(parts) >= 3 && parts[2] == "svc" {
		return admissionv1.WebhookClientConfig{CABundle: a.bundle,
			Service: &admissionv1.ServiceReference{Name: parts[0], Namespace: parts[1], Path: &path}}, nil
	}
	_, port, err := net.SplitHostPort(a.Listener.Addr().String())
	if err != nil {
		return admissionv1.WebhookClientConfig{}, fmt.Errorf("the address of admission: %w", err)
	}
	direct := url.URL{Scheme: "https", Host: net.JoinHostPort(name, port), Path: path}
	return admissionv1.WebhookClientConfig{CABundle: a.bundle, URL: ptr.To(direct.String())}, nil
}
