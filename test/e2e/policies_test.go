//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/gen"
)

// policy of a cluster for the pods of a namespace, which somebody switches on and off.
type podPolicy struct {
	on, off func(t *testing.T, ns string)
}

// inNamespace selects one.
func inNamespace(ns string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}}
}

func labelNamespace(t *testing.T, ns, patch string) {
	t.Helper()
	if _, err := suite.Kube.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatalf("label namespace %s: %v", ns, err)
	}
}

// must fails the test with an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// podPolicies refuse the template with demo:v2, or whatever pod there is.
func podPolicies() map[string]podPolicy {
	return map[string]podPolicy{
		"PodSecurity": {
			on: func(t *testing.T, ns string) {
				labelNamespace(t, ns, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
			},
			off: func(t *testing.T, ns string) {
				labelNamespace(t, ns, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":null}}}`)
			},
		},
		"DeadWebhook": {on: startDeadWebhook, off: func(t *testing.T, ns string) {
			if err := suite.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		"ImagePolicy": {on: startImagePolicy, off: stopImagePolicy},
	}
}

func startDeadWebhook(t *testing.T, ns string) {
	t.Helper()
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ns}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "dead.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
		NamespaceSelector: inNamespace(ns), FailurePolicy: ptr.To(admissionv1.Fail), SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
	}}}
	must[*admissionv1.ValidatingWebhookConfiguration](t)(suite.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), hook, metav1.CreateOptions{}))
	t.Cleanup(func() {
		_ = suite.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{})
	})
}

func startImagePolicy(t *testing.T, ns string) {
	t.Helper()
	api := suite.Kube.AdmissionregistrationV1()
	match := &admissionv1.MatchResources{NamespaceSelector: inNamespace(ns), ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}}
	must[*admissionv1.ValidatingAdmissionPolicy](t)(api.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: match, FailurePolicy: ptr.To(admissionv1.Fail),
			Validations: []admissionv1.Validation{{Expression: `object.spec.containers.all(c, c.image != "demo:v2")`, Message: "demo:v2 is not signed"}}}}, metav1.CreateOptions{}))
	must[*admissionv1.ValidatingAdmissionPolicyBinding](t)(api.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: ns, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}, metav1.CreateOptions{}))
	t.Cleanup(func() {
		_ = api.ValidatingAdmissionPolicyBindings().Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{})
		_ = api.ValidatingAdmissionPolicies().Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{})
	})
}

func stopImagePolicy(t *testing.T, ns string) {
	t.Helper()
	if err := suite.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// refusedNow waits until the API server refuses a pod with demo:v2 in the namespace: a policy
// takes a moment to be in force.
func refusedNow(t *testing.T, ns string, is bool) {
	t.Helper()
	template := gen.Template("tried", "demo:v2")
	eventually(t, fmt.Sprintf("pods are refused: %t", is), func(ctx context.Context) error {
		_, err := suite.Kube.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tried"}, Spec: template.Spec}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if refused := err != nil && !apierrors.IsAlreadyExists(err); refused != is {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
}

// What the API server refuses interrupts nothing that serves, in place and by recreation,
// rolling and by force; and the update goes on when the policy goes.
func TestRefusedUpdatesInterruptNothing(t *testing.T) {
	t.Parallel()
	for name, policy := range podPolicies() {
		for _, policyOfUpdates := range []tappv1.InPlaceUpdatePolicy{tappv1.InPlaceIfPossible, tappv1.ReCreate} {
			for _, forced := range []bool{false, true} {
				recreates := policyOfUpdates == tappv1.ReCreate
				if name != "PodSecurity" && (forced == recreates) == (name == "ImagePolicy") {
					continue // all four ways for one policy, and two for each of the others
				}
				t.Run(fmt.Sprintf("%s/%s/forced=%t", name, policyOfUpdates, forced), func(t *testing.T) {
					t.Parallel()
					opts := []gen.Option{gen.Default(gen.Probe()), gen.Policy(policyOfUpdates), gen.MaxUnavailable("2")}
					if forced {
						opts = append(opts, gen.Pool("other"), func(t *tappv1.TApp) { t.Spec.UpdateStrategy.Template = "other" })
					}
					ns, _ := run(t, gen.TApp("app", opts...))
					before := pods(t, ns)
					r := expose(t, ns, "app")
					r.served(t, 3)
					log := follow(t)
					policy.on(t, ns)
					refusedNow(t, ns, true)
					change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
					refusedTwice(t, log, ns)
					tappWhere(t, ns, "app", "ReplicaFailure", func(tapp *tappv1.TApp) string {
						return unless(meta.IsStatusConditionTrue(tapp.Status.Conditions, tappv1.ConditionReplicaFailure), "not told")
					})
					sameUIDs(t, before, pods(t, ns))
					r.neverFewer(t, 3)
					policy.off(t, ns)
					refusedNow(t, ns, false)
					settled(t, ns, "app")
					for name, p := range pods(t, ns) {
						if image(p, "main") != "demo:v2" {
							t.Errorf("pod %s runs %s", name, image(p, "main"))
						}
					}
				})
			}
		}
	}
}

// refusedTwice waits until the controller has asked twice, and was refused: it asks again
// after a while.
func refusedTwice(t *testing.T, log *audit.Log, ns string) {
	t.Helper()
	refused := 0
	eventually(t, "two dry runs are refused", func(context.Context) error {
		for _, r := range ourRequests(t, log, ns) {
			switch {
			case r.DryRun && r.Code >= 400:
				refused++
			case r.IsWrite() && r.Resource == "pods":
				return fmt.Errorf("a pod is written: %s", r)
			}
		}
		if refused < 2 {
			return fmt.Errorf("%d were", refused)
		}
		return nil
	})
}
