//go:build cluster

package failover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"tkestack.io/tapp/test/gen"
)

// scale changes the spec, which the webhooks judge.
func (r *rig) scale(name string, replicas int32) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		t, err := r.TApps.Get(r.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		gen.Replicas(replicas)(t)
		_, err = r.TApps.Update(r.Context(), t, metav1.UpdateOptions{})
		return err
	})
}

// registering are flags of webhooks that register themselves under the rig's name.
func (r *rig) registering() []string {
	r.Cleanup(func() {
		ctx, api := context.Background(), r.Kube.AdmissionregistrationV1()
		if err := api.MutatingWebhookConfigurations().Delete(ctx, r.NS, metav1.DeleteOptions{}); err != nil {
			r.Error(err)
		}
		if err := api.ValidatingWebhookConfigurations().Delete(ctx, r.NS, metav1.DeleteOptions{}); err != nil {
			r.Error(err)
		}
	})
	return []string{"--register-admission", "--webhook-configuration", r.NS, "--tls-dns-name", "localhost", "--tls-secret-namespace", r.NS,
		"--listen-address", "127.0.0.1:0"}
}

// TestWebhooksGone: while no webhook answers, edits are refused, as the failure
// policy says, and the controller goes on with what it has. When a webhook is
// back, all works without a hand.
func TestWebhooksGone(t *testing.T) {
	r := newRig(t)
	flags := r.registering()
	controller := r.startReplica("controller", "--leader-elect=false", "--namespace", r.NS)
	admission := r.startReplica("webhook", flags...)
	if _, err := r.TApps.Create(r.Context(), gen.TApp("a", gen.Default(gen.Simulated())), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.WaitReady("a")
	if err := r.scale("a", -1); !apierrors.IsInvalid(err) {
		t.Errorf("a bad edit: got error %v, want one of the webhook", err)
	}

	admission.kill()
	if err := r.scale("a", 5); err == nil || !strings.Contains(err.Error(), `failed calling webhook "`) {
		t.Errorf("an edit without a webhook: got error %v, want that the call failed", err)
	}
	before, err := r.Kube.CoreV1().Pods(r.NS).Get(r.Context(), "a-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Kube.CoreV1().Pods(r.NS).Delete(r.Context(), "a-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	controller.eventually("the pod is replaced", func(ctx context.Context) error {
		p, err := r.Kube.CoreV1().Pods(r.NS).Get(ctx, "a-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.UID == before.UID {
			return errors.New("it is the old one")
		}
		return nil
	})
	r.WaitReady("a") // the status is written too

	r.startReplica("webhook", flags...)
	controller.eventually("edits are taken again", func(context.Context) error { return r.scale("a", 5) })
	r.WaitReady("a")
	if err := r.scale("a", -1); !apierrors.IsInvalid(err) {
		t.Errorf("a bad edit: got error %v, want one of the webhook", err)
	}
}

// TestRun: webhooks and controllers in one process. Every replica answers reviews,
// one works, and when the leader stops the other one takes over without an edit
// that is refused.
func TestRun(t *testing.T) {
	r := newRig(t)
	flags := append(r.registering(), "--namespace", r.NS, "--leader-elect-resource-namespace", r.NS)
	// A load balancer is what the replicas lack here: the last one to start has the
	// reviews, and the first one leads.
	leader := r.startReplica("run", flags...)
	leader.becomesLeader()
	other := r.startReplica("run", flags...)
	if _, err := r.TApps.Create(r.Context(), gen.TApp("a", gen.Default(gen.Simulated())), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.WaitReady("a")
	if other.isLeader() || !leader.isLeader() {
		t.Error("not one of them leads, but none or both")
	}
	leader.terminate()
	for n := range int32(20) {
		if err := r.scale("a", 4+n); err != nil {
			t.Errorf("edit %d: %v", n, err)
		}
	}
	leader.hasEnded()
	other.becomesLeader()
	r.WaitReady("a")
	page, err := other.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range []string{
		fmt.Sprintf(`tapp_instances{namespace=%q,state="Running",tapp="a"} 23`, r.NS),
		fmt.Sprintf(`tapp_replicas_available{namespace=%q,tapp="a"} 23`, r.NS),
		`tapp_admission_verdicts_total{rule="",verdict="allowed",webhook="mutate"} `,
		"tapp_certificate_expiry_timestamp_seconds 1.",
	} {
		if !strings.Contains(page, sample) {
			t.Errorf("/metrics lacks %s", sample)
		}
	}
}
