//go:build cluster

// Package admission tests the webhooks behind a real API server, by what users of
// kubectl see. The server runs in the process of the tests.
package admission

import (
	"bytes"
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
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/webhook"
)

// patient is how long anything may take. The machine may be busy; nothing waits
// longer than it has to.
const patient = 2 * time.Minute

// suite is the cluster, with the webhooks in front.
var suite struct {
	*cluster.Cluster
	tapps    client.Interface
	registry *prometheus.Registry
}

// connect finds the cluster.
func connect() (err error) {
	if suite.Cluster, err = cluster.Connect("admission-test"); err != nil {
		return err
	}
	suite.tapps, err = client.New(suite.Config)
	return err
}

// applyCRDs applies the CustomResourceDefinitions, and waits until they are served.
func applyCRDs(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, suite.Program("kubectl"), "--kubeconfig", suite.Kubeconfig,
		"apply", "--server-side", "--force-conflicts", "--filename", filepath.Join("..", "..", "crd", "bases")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, out)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = suite.tapps.TApps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until TApps are served: %w: %w", err, last)
	}
	return nil
}

// serve runs the webhooks until ctx ends, and registers them.
func serve(ctx context.Context) (wait func() error, err error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	suite.registry = prometheus.NewRegistry()
	c := webhook.Defaults()
	c.ShutdownDelay = 0
	c.REST, c.Listener, c.Registry, c.Certificates, c.Version = suite.Config, listener, suite.registry, certificate, "admission-test"
	ended := make(chan error, 1)
	go func() { ended <- webhook.Run(ctx, c) }()
	if err := register(ctx, "https://"+listener.Addr().String(), certificate.authority); err != nil {
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
func register(ctx context.Context, url string, authority []byte) error {
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		url := url + path
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority}
	}
	rule := func(resources ...string) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps.tkestack.io"}, APIVersions: []string{"v1"}, Resources: resources},
		}}
	}
	fail, none, equivalent, reinvoke := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Equivalent, admissionregistrationv1.IfNeededReinvocationPolicy
	seconds, versions := int32(10), []string{"v1"}
	where := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: bypassed, Operator: metav1.LabelSelectorOpDoesNotExist}}}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.tapp.tkestack.io", ClientConfig: at("/mutate/tapp"), Rules: rule("tapps"), FailurePolicy: &fail, MatchPolicy: &equivalent,
			NamespaceSelector: where, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: versions, ReinvocationPolicy: &reinvoke,
		}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configurationName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.tapp.tkestack.io", ClientConfig: at("/validate/tapp"), Rules: rule("tapps", "tapps/scale"), FailurePolicy: &fail, MatchPolicy: &equivalent,
			NamespaceSelector: where, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: versions,
		}},
	}
	unregister(ctx)
	api := suite.Kube.AdmissionregistrationV1()
	if _, err := api.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := api.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patient, true, func(ctx context.Context) (bool, error) {
		t := manifest("probe")
		t.Name = strings.Repeat("a", 80) // which is too long
		_, err := suite.tapps.TApps(metav1.NamespaceDefault).Create(ctx, t, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "validate.tapp.tkestack.io"), nil
	})
}

func unregister(ctx context.Context) {
	api := suite.Kube.AdmissionregistrationV1()
	_ = api.MutatingWebhookConfigurations().Delete(ctx, configurationName, metav1.DeleteOptions{})   // there may be none
	_ = api.ValidatingWebhookConfigurations().Delete(ctx, configurationName, metav1.DeleteOptions{}) // there may be none
}

// namespace makes one for a test.
func namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	ns, err := suite.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "admission-", Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := suite.Kube.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	serviceAccount(t, ns.Name)
	return ns.Name
}

// serviceAccount waits until pods can be created.
func serviceAccount(t *testing.T, ns string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patient, true, func(ctx context.Context) (bool, error) {
		_, err := suite.Kube.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatal("the namespace gets no service account: ", err)
	}
}

// kubectl runs the real kubectl, and returns all that it prints, also when it
// fails.
func kubectl(t *testing.T, ns, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), suite.Program("kubectl"), append([]string{"--kubeconfig", suite.Kubeconfig, "--namespace", ns}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Stdin = &out, &out, strings.NewReader(stdin)
	err := cmd.Run()
	return out.String(), err
}

// mustKubectl runs kubectl, which must succeed.
func mustKubectl(t *testing.T, ns, stdin string, args ...string) string {
	t.Helper()
	out, err := kubectl(t, ns, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}
