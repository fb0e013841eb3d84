//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// policy of the API server that refuses writes of a namespace, unless an expression holds.
// It goes with end.
func policy(operation, resource, unless string) func(t *testing.T, ns string) (end func()) {
	return func(t *testing.T, ns string) func() {
		t.Helper()
		name := ns + "-policy"
		in(t, ns).KubectlWith(fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":%q},"spec":{"failurePolicy":"Fail",
 "matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":[%q],"resources":[%q]}]},
 "validations":[{"expression":%q,"message":"the house does not let it"}]}},
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":%q},
 "spec":{"policyName":%q,"validationActions":["Deny"],"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%q}}}}}]}`,
			name, operation, resource, unless, name, name, ns), "apply", "-f", "-")
		return undo(t, "validatingadmissionpolicybinding/"+name, "validatingadmissionpolicy/"+name)
	}
}

// deadWebhook is a webhook for writes of a namespace that nobody serves. It goes with end.
func deadWebhook(operation, resource string) func(t *testing.T, ns string) (end func()) {
	return func(t *testing.T, ns string) func() {
		t.Helper()
		name := ns + "-webhook"
		in(t, ns).KubectlWith(fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":%q},"webhooks":[
{"name":"dead.tapp.test","failurePolicy":"Fail","sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":2,"clientConfig":{"url":"https://127.0.0.1:9/"},
 "namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%q}},
 "rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":[%q],"resources":[%q]}]}]}`, name, ns, operation, resource), "apply", "-f", "-")
		return undo(t, "validatingwebhookconfiguration/"+name)
	}
}

// undo returns what deletes the objects. It comes before the namespace goes, too.
func undo(t *testing.T, objects ...string) func() {
	t.Helper()
	end := func() {
		if out, err := suite.Command(context.WithoutCancel(t.Context()), "", "kubectl", append([]string{"delete", "--ignore-not-found"}, objects...)...); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	t.Cleanup(end)
	return end
}

// refused waits until the condition ReplicaFailure has these words.
func refused(t *testing.T, ns string, is metav1.ConditionStatus, reason string, words ...string) {
	t.Helper()
	tappWhere(t, ns, "app", fmt.Sprintf("the condition ReplicaFailure is %s, %s %v", is, reason, words), func(tapp *tappv1.TApp) string {
		c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionReplicaFailure)
		if c == nil || c.Status != is || c.Reason != reason {
			return fmt.Sprintf("it is %+v", c)
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return "it says " + c.Message
			}
		}
		return ""
	})
}

// What a policy or a webhook of the API server refuses is in the condition ReplicaFailure:
// the reason, the instance and the API server's words. Stalled names them, too, and not the
// instances that only wait. When the policy goes, all of it comes about.
func TestRefused(t *testing.T) {
	t.Parallel()
	const house = "the house does not let it"
	deadline := func(t *tappv1.TApp) { t.Spec.ProgressDeadlineSeconds = new(int32(3)) }
	for name, c := range map[string]struct {
		deny   func(*testing.T, string) func()
		probe  []string // what kubectl is refused once the policy holds
		change gen.Option
		reason string
		words  []string
		stuck  string
	}{
		"update": {
			policy("UPDATE", "pods", "object.spec.containers[0].image == oldObject.spec.containers[0].image"),
			[]string{"set", "image", "pod/app-0", "main=demo:v3"}, gen.Default(gen.Image("demo:v2")), "FailedUpdate",
			[]string{"cannot begin the update in place of instance 0 since ", house}, "instance 0: cannot begin its update in place: ",
		},
		"drain": {
			policy("UPDATE", "pods/status", "!has(object.status.conditions) || !object.status.conditions.exists(c, c.type == 'tkestack.io/InPlaceUpdate' && c.status == 'False')"),
			[]string{"patch", "pod", "app-0", "--subresource=status", "-p", `{"status":{"conditions":[{"type":"tkestack.io/InPlaceUpdate","status":"False"}]}}`},
			gen.Default(gen.Image("demo:v2")), "FailedUpdate",
			[]string{"cannot drain instance 0 since ", house}, "instance 0: cannot drain it: ",
		},
		"webhook": {
			deadWebhook("UPDATE", "pods"),
			[]string{"set", "image", "pod/app-0", "main=demo:v3"}, gen.Default(gen.Image("demo:v2")), "FailedUpdate",
			[]string{"cannot begin the update in place of instance 0 since ", `failed calling webhook "dead.tapp.test"`}, "instance 0: cannot begin its update in place: ",
		},
		"delete": {
			policy("DELETE", "pods", "false"),
			[]string{"delete", "pod", "app-0"}, gen.Default(gen.Env("A", "1")), "FailedDelete",
			[]string{"cannot delete the pod of instance 0 since ", house}, "instance 0: cannot delete its pod: ",
		},
		"scale-down": {
			policy("DELETE", "pods", "false"),
			[]string{"delete", "pod", "app-0"}, gen.Replicas(1), "FailedDelete",
			[]string{"cannot delete the pod of instance 1 since ", "(and 1 other instance)", house}, "instance 1: cannot delete its pod: ",
		},
		"create": {
			policy("CREATE", "pods", "false"),
			[]string{"run", "probe", "--image=demo:v1"}, gen.Replicas(5), "FailedCreate",
			[]string{"cannot create instance 3 since ", house}, "instance 3: cannot create its pod: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", deadline))
			end := c.deny(t, ns)
			eventually(t, "the policy holds", func(context.Context) error {
				if out, err := tryKubectl(t, ns, append(c.probe, "--dry-run=server")...); err == nil {
					return fmt.Errorf("kubectl is let: %s", out)
				}
				return nil
			})
			change(t, ns, "app", c.change)
			refused(t, ns, metav1.ConditionTrue, c.reason, c.words...)
			stalled(t, ns, "app", c.stuck)
			hasEvent(t, ns, "app", warning, c.reason)
			told := plugin(t, ns, "explain", "app", strings.Fields(c.stuck)[1][:1]) + plugin(t, ns, "plan", "app")
			for _, words := range append(c.words, c.reason+": cannot") {
				if n := strings.Count(told, words); n < 2 {
					t.Errorf("explain and plan do not both tell %q:\n%s", words, told)
				}
			}
			end()
			settled(t, ns, "app")
			refused(t, ns, metav1.ConditionFalse, "NotRefused")
		})
	}
}

// plugin runs kubectl tapp, whose plan ends with 2 where something is left to do.
func plugin(t *testing.T, ns string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), suite.Program("tapp"), append(args, "-n", ns)...)
	c.Args[0] = "kubectl-tapp"
	c.Env = append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig)
	out, err := c.CombinedOutput()
	if err != nil && c.ProcessState.ExitCode() != 2 {
		t.Errorf("kubectl tapp %v: %v: %s", args, err, out)
	}
	return string(out)
}
