//go:build cluster

package install

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestPolicies: what TApp's account has the right to do, and still may not.
func TestPolicies(t *testing.T) {
	r := newRig(t)
	install(t, "tls.mode=selfManaged")
	rolledOut(t)
	r.answers()
	r.apply(goodTApp("confined", 1, "nginx:1.25"))
	r.WaitReady("confined")
	r.Kubectl("run", "stranger", "--image=nginx:1.25")
	r.apply("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: stranger}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")

	const account = "--as=system:serviceaccount:" + releaseSpace + ":" + releaseName
	const creates, deletes = "TApp's account creates pods of TApps only, and this one has none as its controller", "TApp's account deletes only what has the label of an instance"
	for _, c := range []struct {
		name string
		args []string
		says string // empty: it works
	}{
		{"a pod", []string{"run", "own", "--image=nginx:1.25"}, creates},
		{"a pod that is only tried", []string{"run", "own", "--image=nginx:1.25", "--dry-run=server"}, ""},
		{"a pod of somebody else", []string{"delete", "pod", "stranger"}, deletes},
		{"a claim of somebody else", []string{"delete", "pvc", "stranger"}, deletes},
		{"a pod of a TApp", []string{"delete", "pod", "confined-0"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{account, "--namespace", r.NS}, c.args...)
			out, err := suite.Command(t.Context(), "", "kubectl", args...)
			if (err == nil) != (c.says == "") || !strings.Contains(out+errText(err), c.says) {
				t.Errorf("kubectl says %s (%v)\nwant %q", out, err, c.says)
			}
		})
	}
	r.WaitReady("confined")
}

// TestWebhookPolicy: TApp's account changes caBundle, and nothing else.
func TestWebhookPolicy(t *testing.T) {
	r := newRig(t)
	install(t, "tls.mode=selfManaged")
	rolledOut(t)
	r.answers()
	account := rest.CopyConfig(suite.Config)
	account.Impersonate.UserName = "system:serviceaccount:" + releaseSpace + ":" + releaseName
	client, err := kubernetes.NewForConfig(account)
	if err != nil {
		t.Fatal(err)
	}
	const changes = "TApp's account changes nothing of its webhook configurations but caBundle"
	for _, c := range []struct {
		name, kind, patch, says string
	}{
		{"the CA", "mutating", `[{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "Cg=="}]`, ""},
		{"the address", "mutating", `[{"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "x"}]`, changes},
		{"the rules", "validating", `[{"op": "replace", "path": "/webhooks/0/rules/0/resources", "value": ["*"]}]`, changes},
		{"the failure policy", "validating", `[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]`, changes},
		{"no webhook", "validating", `[{"op": "remove", "path": "/webhooks/0"}]`, changes},
		{"a label", "validating", `[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]`, changes},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := "/apis/admissionregistration.k8s.io/v1/" + c.kind + "webhookconfigurations/" + releaseName
			err := client.AdmissionregistrationV1().RESTClient().Patch(types.JSONPatchType).AbsPath(path).Body([]byte(c.patch)).Do(t.Context()).Error()
			if (err == nil) != (c.says == "") || !strings.Contains(errText(err), c.says) {
				t.Errorf("the API server says %v, want %q", err, c.says)
			}
		})
	}
	r.answers() // TApp puts right what is wrong with caBundle
}

// TestSecureMetrics: they are served by HTTPS, to those who show a token, and nowhere else.
func TestSecureMetrics(t *testing.T) {
	install(t, "metrics.secure.enabled=true")
	rolledOut(t)
	for service, want := range map[string]string{"https:tapp:metrics-tls": "the server has asked for the client to provide credentials", "http:tapp:metrics": "the server could not find the requested resource"} {
		path := "/api/v1/namespaces/" + releaseSpace + "/services/" + service + "/proxy/metrics"
		out, err := suite.Command(t.Context(), "", "kubectl", "get", "--raw", path)
		if err == nil || !strings.Contains(out+errText(err), want) {
			t.Errorf("%s: kubectl says %s (%v), want %s", service, out, err, want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
