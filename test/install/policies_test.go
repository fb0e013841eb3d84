//go:build cluster

package install

import (
	"strings"
	"testing"
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
	const webhooks = "TApp's account changes nothing of its webhook configurations but caBundle"
	patch := func(kind, patch string) []string {
		return []string{"patch", kind, releaseName, "--type=json", "--patch", patch}
	}
	for _, c := range []struct {
		name string
		args []string
		says string // empty: it works
	}{
		{"a pod", []string{"run", "own", "--image=nginx:1.25"}, creates},
		{"a pod that is only tried", []string{"run", "own", "--image=nginx:1.25", "--dry-run=server"}, ""},
		{"a pod of somebody else", []string{"delete", "pod", "stranger"}, deletes},
		{"a claim of somebody else", []string{"delete", "pvc", "stranger"}, deletes},
		{"the CA", patch("mutatingwebhookconfiguration", `[{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "Cg=="}]`), ""},
		{"the address", patch("mutatingwebhookconfiguration", `[{"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "x"}]`), webhooks},
		{"the rules", patch("validatingwebhookconfiguration", `[{"op": "replace", "path": "/webhooks/0/rules/0/resources", "value": ["*"]}]`), webhooks},
		{"the failure policy", patch("validatingwebhookconfiguration", `[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]`), webhooks},
		{"no webhook", patch("validatingwebhookconfiguration", `[{"op": "remove", "path": "/webhooks/0"}]`), webhooks},
		{"a label", patch("validatingwebhookconfiguration", `[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]`), webhooks},
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

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
