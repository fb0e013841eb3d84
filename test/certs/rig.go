//go:build cluster

// Package certs tests certificates of our own on a real API server, which judges
// them: it calls webhooks that are served with them, while they and their CA change.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/certs"
	"tkestack.io/tapp/test/cluster"
)

const (
	secret = "tapp-ca"
	// leaf and authority are how long certificates and their CA are valid.
	leaf      = 6 * time.Second
	authority = 45 * time.Second
)

// rig is a namespace with a CA, and webhooks for its ConfigMaps.
type rig struct{ *cluster.Rig }

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{cluster.New(t, "certs")}
	t.Cleanup(func() {
		ctx, api := context.Background(), r.Kube.AdmissionregistrationV1()
		for _, err := range []error{
			api.MutatingWebhookConfigurations().Delete(ctx, r.NS, metav1.DeleteOptions{}),
			api.ValidatingWebhookConfigurations().Delete(ctx, r.NS, metav1.DeleteOptions{}),
		} {
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
	return r
}

// replica is a process of ours that serves reviews.
type replica struct {
	*certs.Source
	address string
}

// start a replica. A fresh one closes the connection after every answer, so that
// every request shakes hands anew.
func (r *rig) start(fresh bool) replica {
	r.Helper()
	source, err := certs.SelfManaged(certs.SelfManagedOptions{
		REST: r.Config, SecretNamespace: r.NS, SecretName: secret, DNSNames: []string{"localhost"},
		Configuration: r.NS, CADuration: authority, LeafDuration: leaf,
	})
	if err != nil {
		r.Fatal(err)
	}
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		r.Fatal(err)
	}
	server := &http.Server{TLSConfig: certs.TLSConfig(source.GetCertificate), Handler: http.HandlerFunc(allow), ReadHeaderTimeout: time.Minute}
	if fresh {
		server.TLSConfig.NextProtos = []string{"http/1.1"}
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
		server.SetKeepAlivesEnabled(false)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := source.Run(ctx); err != nil {
			r.Error(err)
		}
	})
	running.Go(func() { _ = server.ServeTLS(listener, "", "") })
	r.Cleanup(func() {
		_ = server.Close()
		cancel()
		running.Wait()
	})
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		r.Fatal(err)
	}
	return replica{source, "https://localhost:" + port + "/"}
}

// allow answers every review with yes.
func allow(w http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// register has the API server ask both replicas about every ConfigMap of the
// namespace, and refuse it if one does not answer.
func (r *rig) register(mutating, validating replica) error {
	fail, none := registrationv1.Fail, registrationv1.SideEffectClassNone
	rules := []registrationv1.RuleWithOperations{{
		Operations: []registrationv1.OperationType{registrationv1.Create},
		Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	here := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: r.NS}}
	meta := metav1.ObjectMeta{Name: r.NS}
	return certs.Register(r.Context(), r.Kube.AdmissionregistrationV1(),
		&registrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []registrationv1.MutatingWebhook{{
			Name: "mutate.tapp.test", ClientConfig: registrationv1.WebhookClientConfig{URL: &mutating.address}, Rules: rules,
			FailurePolicy: &fail, SideEffects: &none, NamespaceSelector: here, AdmissionReviewVersions: []string{"v1"},
		}}},
		&registrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "validate.tapp.test", ClientConfig: registrationv1.WebhookClientConfig{URL: &validating.address}, Rules: rules,
			FailurePolicy: &fail, SideEffects: &none, NamespaceSelector: here, AdmissionReviewVersions: []string{"v1"},
		}}})
}

// request makes the API server call both webhooks.
func (r *rig) request(ctx context.Context) error {
	_, err := r.Kube.CoreV1().ConfigMaps(r.NS).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// load makes requests from several sides until stop is called, which returns how
// many there were, and the first that failed.
func (r *rig) load(clients int) (stop func() (int64, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	var count atomic.Int64
	var once sync.Once
	var failure error
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for ctx.Err() == nil {
				if err := r.request(context.WithoutCancel(ctx)); err != nil {
					once.Do(func() {
						failure = fmt.Errorf("request %d at %s: %w", count.Load(), time.Now().Format(time.StampMilli), err)
					})
					return
				}
				count.Add(1)
			}
		})
	}
	return func() (int64, error) {
		cancel()
		running.Wait()
		return count.Load(), failure
	}
}

func (r *rig) wait(what string, check func() bool) {
	r.Helper()
	r.Eventually(what, func(context.Context) error { return cluster.When(!check(), "not yet") })
}

// ca is the one in the Secret, nil if there is none.
func (r *rig) ca() *x509.Certificate {
	s, err := r.Kube.CoreV1().Secrets(r.NS).Get(r.Context(), secret, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	block, _ := pem.Decode(s.Data[corev1.TLSCertKey])
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// serves says whether what the replica serves is signed by this CA.
func (p replica) serves(ca *x509.Certificate) bool {
	c, err := p.GetCertificate(nil)
	return err == nil && ca != nil && c.Leaf.CheckSignatureFrom(ca) == nil
}

// serial of the certificate that is served.
func (p replica) serial() string {
	c, err := p.GetCertificate(nil)
	if err != nil {
		return ""
	}
	return c.Leaf.SerialNumber.String()
}
