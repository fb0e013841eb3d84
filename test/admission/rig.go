//go:build cluster

// Package admission tests the webhooks behind a real API server, by what users of
// kubectl see. The server runs in the process of the tests.
package admission

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/controller"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/webhook"
)

// patient is how long anything may take here.
const patient = 2 * time.Minute

// suite is the cluster, with the webhooks in front.
type suite struct{ *cluster.Cluster }

// begin puts the webhooks in front of the cluster, until end is called.
func begin(ctx context.Context) (end func(context.Context) error, err error) {
	c, err := cluster.Connect("admission-test")
	if err != nil {
		return nil, err
	}
	if err := cluster.ApplyCRDs(ctx, "admission-test", controller.Kinds()...); err != nil {
		return nil, err
	}
	s := suite{c}
	serving, stop := context.WithCancel(ctx)
	ended, err := s.serve(serving)
	if err != nil {
		stop()
		return nil, err
	}
	return func(ctx context.Context) error {
		s.unregister(ctx)
		stop()
		return ended()
	}, nil
}

// serve runs the webhooks until ctx ends, and registers them.
func (s suite) serve(ctx context.Context) (wait func() error, err error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := webhook.Defaults()
	c.ShutdownDelay = 0
	c.REST, c.Listener, c.Registry, c.Certificates, c.Version = s.Config, listener, prometheus.NewRegistry(), certificate, "admission-test"
	ended := make(chan error, 1)
	go func() { ended <- webhook.Run(ctx, c) }()
	if err := s.register(ctx, "https://"+listener.Addr().String(), certificate.authority); err != nil {
		return nil, err
	}
	return func() error { return <-ended }, nil
}

// certificate is its own authority.
type certificate struct {
	tls.Certificate
	authority []byte
}

func (c *certificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &c.Certificate, nil
}

func (c *certificate) Ready() bool { return true }

func selfSigned() (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admission-test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certificate{
		Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		authority:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

// bypassed is the label of namespaces in which the webhooks are not asked.
const bypassed = "admission-test/bypassed"

// configurationName is that of both webhook configurations.
const configurationName = "tapp"

// register has the API server call the webhooks, and waits until it does.
func (s suite) register(ctx context.Context, url string, authority []byte) error {
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		url := url + path
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority}
	}
	rule := func(version schema.GroupVersion, resources ...string) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{version.Group}, APIVersions: []string{version.Version}, Resources: resources},
		}}
	}
	fail, none, equivalent, reinvoke := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Equivalent, admissionregistrationv1.IfNeededReinvocationPolicy
	seconds, versions := int32(10), []string{"v1"}
	where := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: bypassed, Operator: metav1.LabelSelectorOpDoesNotExist}}}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.tapp.tkestack.io", ClientConfig: at("/mutate/tapp"), Rules: rule(tappv1.SchemeGroupVersion, "tapps"), FailurePolicy: &fail, MatchPolicy: &equivalent,
			NamespaceSelector: where, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: versions, ReinvocationPolicy: &reinvoke,
		}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.tapp.tkestack.io", ClientConfig: at("/validate/tapp"), Rules: rule(tappv1.SchemeGroupVersion, "tapps", "tapps/scale"), FailurePolicy: &fail, MatchPolicy: &equivalent,
			NamespaceSelector: where, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: versions,
		}, {
			Name: "validate.appset.tkestack.io", ClientConfig: at("/validate/appset"), Rules: rule(v1beta1.SchemeGroupVersion, "appsets"), FailurePolicy: &fail, MatchPolicy: &equivalent,
			NamespaceSelector: where, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: versions,
		}, {
			Name: "validate.advdeployment.tkestack.io", ClientConfig: at("/validate/advdeployment"), Rules: rule(v1beta1.SchemeGroupVersion, "advdeployments"), FailurePolicy: &fail, MatchPolicy: &equivalent,
			NamespaceSelector: where, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: versions,
		}},
	}
	s.unregister(ctx)
	api := s.Kube.AdmissionregistrationV1()
	if _, err := api.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := api.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{}); err != nil {
		return err
	}
	return cluster.Poll(ctx, patient, func(ctx context.Context) error {
		t := manifest("probe")
		t.Name = strings.Repeat("a", 80) // which is too long
		_, err := s.TApps(metav1.NamespaceDefault).Create(ctx, t, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "validate.tapp.tkestack.io") {
			return fmt.Errorf("the webhooks are not asked: %s", fmt.Sprint(err))
		}
		return nil
	})
}

func (s suite) unregister(ctx context.Context) {
	api := s.Kube.AdmissionregistrationV1()
	_ = api.MutatingWebhookConfigurations().Delete(ctx, configurationName, metav1.DeleteOptions{})   // there may be none
	_ = api.ValidatingWebhookConfigurations().Delete(ctx, configurationName, metav1.DeleteOptions{}) // there may be none
}

// rig is a namespace behind the webhooks.
type rig struct{ *cluster.Rig }

func newRig(t *testing.T, labels map[string]string) *rig {
	t.Helper()
	return &rig{cluster.New(t, "admission", cluster.Labels(labels))}
}

// eventually is Eventually with the patience of this suite.
func (r *rig) eventually(what string, holds func() bool) {
	r.Helper()
	cluster.Within(r.T, patient, what, func(context.Context) error { return cluster.When(!holds(), "it does not") })
}
