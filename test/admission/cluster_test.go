//go:build cluster

package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/test/gen"
)

// TestForbiddenPods: what the cluster forbids may be allowed when the pods are
// made, so that it is told of, in the cluster's words.
func TestForbiddenPods(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		labels map[string]string
		quota  string
		opts   []gen.Option
		want   []string
	}{
		"PodSecurity enforces": {map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}, "", []gen.Option{gen.Default(hostNetwork)}, []string{
			`Warning: spec.template: a pod of it could not be created now: pods "web-2" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
		}},
		"PodSecurity warns": {map[string]string{"pod-security.kubernetes.io/warn": "baseline"}, "", []gen.Option{gen.Default(hostNetwork)}, []string{
			`Warning: spec.template: would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
		}},
		"two templates": {map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}, "", []gen.Option{gen.Default(hostNetwork), gen.Pool("canary")}, []string{
			`Warning: spec.template, spec.templatePool[canary]: a pod of it could not be created now: pods "web-2" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
		}},
		"quota": {nil, "0", nil, []string{
			`Warning: spec.template: a pod of it could not be created now: pods "web-2" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=0, limited: pods=0`,
		}},
		"service account": {nil, "", []gen.Option{gen.Default(serviceAccountName("nobody"))}, []string{
			`Warning: spec.template: a pod of it could not be created now: pods "web-2" is forbidden: error looking up service account NAMESPACE/nobody: serviceaccount "nobody" not found`,
		}},
		"priority class": {nil, "", []gen.Option{gen.Default(priorityClass("urgent"))}, []string{
			`Warning: spec.template: a pod of it could not be created now: pods "web-2" is forbidden: no PriorityClass with name urgent was found`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.labels)
			if c.quota != "" {
				r.setQuota(c.quota)
			}
			out := r.KubectlWith(text(t, manifest("web", c.opts...)), "apply", "--filename", "-")
			expect(t, strings.ReplaceAll(out, r.NS, "NAMESPACE"), append(c.want, "tapp.apps.tkestack.io/web created")...)
			// What did not change is not tried again.
			expect(t, r.Kubectl("patch", "tapp", "web", "--type=merge", "--patch", `{"spec":{"minReadySeconds":1,"replicas":0}}`),
				"tapp.apps.tkestack.io/web patched")
		})
	}
}

// setQuota of pods, and wait until it is in force.
func (r *rig) setQuota(pods string) {
	r.Helper()
	quotas := r.Kube.CoreV1().ResourceQuotas(r.NS)
	_, err := quotas.Create(r.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}},
	}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	r.eventually("the quota is in force", func() bool {
		q, err := quotas.Get(r.Context(), "pods", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0
	})
}

// TestScale: the subresource is judged as the field is.
func TestScale(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	long := strings.Repeat("w", 61)
	r.KubectlWith(text(t, manifest(long, gen.Replicas(2))), "apply", "--filename", "-")
	scale := func(replicas string) string {
		t.Helper()
		out, err := r.TryKubectl("scale", "--replicas="+replicas, "tapp/"+long)
		if err == nil {
			t.Errorf("%s replicas are admitted: %s", replicas, out)
		}
		return out
	}
	expect(t, scale("11"), `The TApp "`+long+`" is invalid: metadata.name: Invalid value: "`+long+
		`": instance 10 would have a pod name of 64 characters, and 63 are allowed; give the TApp a name of at most 60`)
	r.Kubectl("scale", "--replicas=10", "tapp/"+long)
	r.KubectlWith(text(t, manifest("web", gen.Killed(1))), "apply", "--filename", "-")
	out, err := r.TryKubectl("scale", "--replicas=50001", "tapp/web")
	if err == nil {
		t.Error("50,001 replicas are admitted")
	}
	expect(t, out, `The TApp "web" is invalid: spec.replicas: Invalid value: 50001: one TApp can have 50000 instances; split it into several`)
	expect(t, r.Kubectl("scale", "--replicas=1", "tapp/web"),
		"Warning: spec.statuses: instance 1 has an entry, and does not exist while spec.replicas is 1",
		"Warning: 1 instance is created (0): the instance has no pod",
		"tapp.apps.tkestack.io/web scaled")
	expect(t, r.Kubectl("scale", "--replicas=0", "tapp/web"),
		"Warning: spec.statuses: instance 1 has an entry, and does not exist while spec.replicas is 0",
		"tapp.apps.tkestack.io/web scaled")
	if n := *r.Get("web").Spec.Replicas; n != 0 {
		t.Errorf("spec.replicas is %d", n)
	}
}

// TestRatchet: what got past the webhooks does not block updates that leave it
// alone, and can be deleted.
func TestRatchet(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{bypassed: ""})
	broken := text(t, manifest("web", gen.Use("gone", 1), gen.MaxUnavailable("0")))
	r.KubectlWith(broken, "create", "--filename", "-")
	r.Kubectl("patch", "tapp", "web", "--type=merge", "--patch", `{"metadata":{"finalizers":["admission-test/wait"]}}`)
	r.Kubectl("label", "namespace", r.NS, bypassed+"-")
	patch := func(patch string) (string, error) {
		t.Helper()
		return r.TryKubectl("patch", "tapp", "web", "--type=merge", "--patch", patch)
	}
	r.eventually("the webhooks are asked", func() bool {
		_, err := r.TryKubectl("patch", "tapp", "web", "--dry-run=server", "--type=merge", "--patch", `{"spec":{"templates":{"2":"nowhere"}}}`)
		return err != nil
	})
	out, err := patch(`{"spec":{"templates":{"2":"nowhere"},"replicas":4}}`)
	if err == nil {
		t.Error("a new mistake is admitted")
	}
	expect(t, out, `The TApp "web" is invalid: spec.templates[2]: Not found: "nowhere": there is no such template; add it to spec.templatePool, or name another one (there are: default)`)

	if out, err := patch(`{"metadata":{"labels":{"team":"shop"}}}`); err != nil {
		t.Error(out)
	} else {
		expect(t, out, "tapp.apps.tkestack.io/web patched")
	}
	out, err = patch(`{"spec":{"minReadySeconds":5}}`)
	if err != nil {
		t.Error(out)
	}
	expect(t, out,
		`Warning: spec.templates[1]: Not found: "gone": there is no such template; add it to spec.templatePool, or name another one (there are: default) (this was so before, and does not block the update)`,
		`Warning: spec.updateStrategy.maxUnavailable: Invalid value: 0: no update could start; give a number above 0, or a percentage from 1% to 100% (this was so before, and does not block the update)`,
		"Warning: 2 instances are created (0,2): the instance has no pod",
		"tapp.apps.tkestack.io/web patched")

	if err := r.TApps.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.TApps.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("the finalizer cannot be removed: %v", err)
	}
	r.eventually("the TApp goes", func() bool {
		list, err := r.TApps.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
}

// TestPoolOfFifty: fifty templates are tried within the deadline.
func TestPoolOfFifty(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var opts []gen.Option
	for i := range 50 {
		opts = append(opts, gen.Pool("t"+string(rune('a'+i/26))+string(rune('a'+i%26)), gen.Env("NUMBER", string(rune('a'+i%26)))))
	}
	expect(t, r.KubectlWith(text(t, manifest("web", opts...)), "create", "--filename", "-"), "tapp.apps.tkestack.io/web created")
}
