package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

func secretOf(c ca) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "tapp-ca"},
		Data:       map[string][]byte{corev1.TLSCertKey: c.pem},
	}
}

func mutatingOf(name string, webhooks ...string) *admissionv1.MutatingWebhookConfiguration {
	c := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}}
	for _, w := range webhooks {
		c.Webhooks = append(c.Webhooks, admissionv1.MutatingWebhook{Name: w})
	}
	return c
}

func validatingOf(name string, webhooks ...string) *admissionv1.ValidatingWebhookConfiguration {
	c := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "8"}}
	for _, w := range webhooks {
		c.Webhooks = append(c.Webhooks, admissionv1.ValidatingWebhook{Name: w})
	}
	return c
}

// rig is an Injector that runs.
type rig struct {
	*Injector
	client  *fake.Clientset
	patches atomic.Int64
}

func newRig(t *testing.T, objects ...runtime.Object) *rig {
	t.Helper()
	r := &rig{client: fake.NewClientset(objects...)}
	r.Injector = &Injector{
		Secrets: r.client.CoreV1(), SecretNamespace: "kube-system", SecretName: "tapp-ca",
		Webhooks: r.client.AdmissionregistrationV1(), Configuration: "tapp", LeafDuration: time.Hour,
	}
	return r
}

func (r *rig) start(t *testing.T) {
	t.Helper()
	r.client.PrependReactor("patch", "*", func(ktesting.Action) (bool, runtime.Object, error) {
		r.patches.Add(1)
		return false, nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// bundles of all webhooks of the configurations called tapp.
func (r *rig) bundles(t *testing.T) map[string][]byte {
	t.Helper()
	api, all := r.client.AdmissionregistrationV1(), map[string][]byte{}
	if m, err := api.MutatingWebhookConfigurations().Get(t.Context(), "tapp", metav1.GetOptions{}); err == nil {
		for _, w := range m.Webhooks {
			all[w.Name] = w.ClientConfig.CABundle
		}
	}
	if v, err := api.ValidatingWebhookConfigurations().Get(t.Context(), "tapp", metav1.GetOptions{}); err == nil {
		for _, w := range v.Webhooks {
			all[w.Name] = w.ClientConfig.CABundle
		}
	}
	return all
}

// waitFor waits until every bundle is this one, and the injector has seen it.
func (r *rig) waitFor(t *testing.T, want []byte) {
	t.Helper()
	wait(t, fmt.Sprintf("the bundles hold %v", names(want)), func() bool {
		for _, got := range r.bundles(t) {
			if !bytes.Equal(got, want) {
				return false
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.bundled) == len(parse(want))
	})
}

// cached says whether every bundle in the caches is this one.
func (r *rig) cached(t *testing.T, want []byte) bool {
	t.Helper()
	for _, c := range r.configurations() {
		for _, got := range c.bundles {
			if !bytes.Equal(got, want) {
				return false
			}
		}
	}
	return true
}

func TestInjector(t *testing.T) {
	now := time.Now()
	first := newCA(t, "first", now.Add(-time.Minute), now.Add(24*time.Hour))
	second := newCA(t, "second", now.Add(-time.Second), now.Add(24*time.Hour))
	foreign := mutatingOf("another", "another.test")
	r := newRig(t, secretOf(first), mutatingOf("tapp", "mutate.test", "mutate-too.test"), validatingOf("tapp", "validate.test"), foreign)
	if _, ok := r.trusted(first.pair(t, 1, now, now).Leaf); ok {
		t.Error("nothing is known yet")
	}
	r.start(t)
	r.waitFor(t, first.pem)
	since, ok := r.trusted(first.pair(t, 1, now, now).Leaf)
	if !ok || since.Before(now) {
		t.Error("first: ", since, ok)
	}
	if _, ok := r.trusted(second.pair(t, 1, now, now).Leaf); ok {
		t.Error("the second is nowhere yet")
	}

	api, secrets := r.client.AdmissionregistrationV1(), r.client.CoreV1().Secrets("kube-system")
	if _, err := secrets.Update(t.Context(), secretOf(second), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	both := join(second.pem, first.pem)
	r.waitFor(t, both)
	if again, ok := r.trusted(first.pair(t, 1, now, now).Leaf); !ok || !again.Equal(since) {
		t.Error("the first was trusted all the time: ", again, ok)
	}
	if _, ok := r.trusted(second.pair(t, 1, now, now).Leaf); !ok {
		t.Error("the second is trusted")
	}
	wait(t, "the caches hold what was written", func() bool { return r.cached(t, both) })
	before := r.patches.Load()
	if err := r.inject(t.Context()); err != nil || r.patches.Load() != before {
		t.Errorf("%d patches where nothing differs, %v", r.patches.Load()-before, err)
	}

	// Whoever removes it, it comes back.
	validating := validatingOf("tapp", "validate.test")
	if _, err := api.ValidatingWebhookConfigurations().Update(t.Context(), validating, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait(t, "the bundle is back", func() bool { return bytes.Equal(r.bundles(t)["validate.test"], second.pem) })

	// A CA is trusted when all trust it.
	wait(t, "the first is trusted no more", func() bool { _, ok := r.trusted(first.pair(t, 1, now, now).Leaf); return !ok })
	if err := api.ValidatingWebhookConfigurations().Delete(t.Context(), "tapp", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wait(t, "the first is trusted by all that are left", func() bool { _, ok := r.trusted(first.pair(t, 1, now, now).Leaf); return ok })
	if err := api.MutatingWebhookConfigurations().Delete(t.Context(), "tapp", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	stranger := newCA(t, "stranger", now, now.Add(time.Hour))
	wait(t, "nobody is left to trust anything", func() bool { _, ok := r.trusted(stranger.pair(t, 1, now, now).Leaf); return ok })

	other, err := api.MutatingWebhookConfigurations().Get(t.Context(), "another", metav1.GetOptions{})
	if err != nil || len(other.Webhooks[0].ClientConfig.CABundle) != 0 {
		t.Error("another's was written: ", err)
	}
}

func TestInjectorNamesTheVersionThatItRead(t *testing.T) {
	now := time.Now()
	r := newRig(t, secretOf(newCA(t, "one", now, now.Add(time.Hour))), mutatingOf("tapp", "mutate.test"))
	patch := make(chan string, 10)
	r.client.PrependReactor("patch", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		patch <- string(a.(ktesting.PatchAction).GetPatch())
		return false, nil, nil
	})
	r.start(t)
	if got := <-patch; !strings.Contains(got, `"metadata":{"resourceVersion":"7"}`) {
		t.Error(got)
	}
}

func TestInjectorTriesAgain(t *testing.T) {
	now := time.Now()
	one := newCA(t, "one", now, now.Add(time.Hour))
	r := newRig(t, secretOf(one), mutatingOf("tapp", "mutate.test"))
	var tries atomic.Int64
	r.client.PrependReactor("patch", "*", func(ktesting.Action) (bool, runtime.Object, error) {
		if tries.Add(1) == 1 {
			return true, nil, errors.New("etcd is away")
		}
		return false, nil, nil
	})
	r.start(t)
	r.waitFor(t, one.pem)
}
