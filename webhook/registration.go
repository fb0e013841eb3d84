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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/certs"
	appv1 "tkestack.io/tapp/crd/app/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

const (
	// reviewTimeout is what the API server gives a review, in seconds.
	reviewTimeout = 10
	// registerRetry is how long to wait after a registration that failed.
	registerRetry = 2 * time.Second
)

// Names of the kinds that there are webhooks for, as their controllers have them.
const (
	KindTApp = "tapp"
	KindApp  = "app"
)

// KnownKinds are those that there are webhooks for.
func KnownKinds() []string { return []string{KindTApp, KindApp} }

// register applies the webhook configurations, with patience for an API server
// that is away. What may not be done is an error.
func (a *Admission) register(ctx context.Context) error {
	mutating, validating, err := a.configurations()
	if err != nil {
		return err
	}
	for {
		err := certs.Register(ctx, a.client, mutating, validating)
		switch {
		case err == nil:
			klog.FromContext(ctx).Info("Registered the webhooks", "configuration", a.TLS.Configuration)
			return nil
		case ctx.Err() != nil:
			return nil
		case apierrors.IsForbidden(err):
			return fmt.Errorf("this program may not register its webhooks: let it (create and patch on mutatingwebhookconfigurations and validatingwebhookconfigurations), or leave out --register-admission: %w", err)
		case apierrors.IsInvalid(err):
			return err
		}
		klog.FromContext(ctx).Error(err, "The webhooks are not registered yet; trying again", "after", registerRetry)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(registerRetry):
		}
	}
}

// configurations are those of the chart.
func (a *Admission) configurations() (*admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration, error) {
	meta := metav1.ObjectMeta{Name: a.TLS.Configuration, Labels: map[string]string{"app.kubernetes.io/managed-by": "tapp"}}
	mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta}
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	if slices.Contains(a.Kinds, KindTApp) {
		mutate, err := a.clientConfig("/mutate/tapp")
		if err != nil {
			return nil, nil, err
		}
		validate, err := a.clientConfig("/validate/tapp")
		if err != nil {
			return nil, nil, err
		}
		mutating.Webhooks = append(mutating.Webhooks, a.mutatingWebhook("mutate.tapp.tkestack.io", mutate, rulesFor(tappv1.SchemeGroupVersion, "tapps")))
		validating.Webhooks = append(validating.Webhooks, a.validatingWebhook("validate.tapp.tkestack.io", validate, rulesFor(tappv1.SchemeGroupVersion, "tapps", "tapps/scale")))
	}
	// Apps are not mutated: what they leave out has its meaning without being written.
	if slices.Contains(a.Kinds, KindApp) {
		validate, err := a.clientConfig("/validate/app")
		if err != nil {
			return nil, nil, err
		}
		validating.Webhooks = append(validating.Webhooks, a.validatingWebhook("validate.app.tkestack.io", validate, rulesFor(appv1.SchemeGroupVersion, "apps")))
	}
	return mutating, validating, nil
}

// where selects the namespaces whose objects are looked at.
func (a *Admission) where() *metav1.LabelSelector {
	if a.Namespace == "" {
		return nil
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: a.Namespace}}
}

func (a *Admission) mutatingWebhook(name string, to admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations) admissionv1.MutatingWebhook {
	return admissionv1.MutatingWebhook{
		Name: name, ClientConfig: to, Rules: rules, NamespaceSelector: a.where(), MatchConditions: stays(), ReinvocationPolicy: ptr.To(admissionv1.IfNeededReinvocationPolicy),
		FailurePolicy: ptr.To(admissionv1.Fail), MatchPolicy: ptr.To(admissionv1.Equivalent), SideEffects: ptr.To(admissionv1.SideEffectClassNone),
		TimeoutSeconds: ptr.To(int32(reviewTimeout)), AdmissionReviewVersions: []string{"v1"},
	}
}

func (a *Admission) validatingWebhook(name string, to admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations) admissionv1.ValidatingWebhook {
	return admissionv1.ValidatingWebhook{
		Name: name, ClientConfig: to, Rules: rules, NamespaceSelector: a.where(), MatchConditions: stays(),
		FailurePolicy: ptr.To(admissionv1.Fail), MatchPolicy: ptr.To(admissionv1.Equivalent), SideEffects: ptr.To(admissionv1.SideEffectClassNone),
		TimeoutSeconds: ptr.To(int32(reviewTimeout)), AdmissionReviewVersions: []string{"v1"},
	}
}

// stays has what is going not looked at: its finalizers can be removed whether or
// not a webhook answers.
func stays() []admissionv1.MatchCondition {
	return []admissionv1.MatchCondition{{Name: "stays", Expression: "!has(object.metadata.deletionTimestamp)"}}
}

func rulesFor(gv schema.GroupVersion, resources ...string) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{gv.Group}, APIVersions: []string{gv.Version}, Resources: resources,
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
