//go:build cluster

package install

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// neverSeen are rights that are granted, and that no request of this suite shows.
var neverSeen = map[right]string{
	{"apps.tkestack.io", "tapps/finalizers", "update"}:                           "asked by the admission plugin OwnerReferencesPermissionEnforcement, not by a request of ours",
	{"apps.tkestack.io", "tapps", "patch"}:                                       "prunes unused templates of TApps that were stored without the webhook, of which there are none here",
	{"", "persistentvolumeclaims", "list"}:                                       listed,
	{"apps", "controllerrevisions", "list"}:                                      listed,
	{"appcontroller.k8s.io", "apps/finalizers", "update"}:                        "as tapps/finalizers",
	{"appcontroller.k8s.io", "apps", "list"}:                                     listed,
	{"appcontroller.k8s.io", "apps", "watch"}:                                    watched,
	{"apps", "deployments", "list"}:                                              listed,
	{"apps", "deployments", "watch"}:                                             watched,
	{"", "services", "list"}:                                                     listed,
	{"", "services", "watch"}:                                                    watched,
	{"apps", "deployments", "create"}:                                            applied,
	{"", "services", "create"}:                                                   applied,
	{"", "events", "patch"}:                                                      "an event that is told again within minutes",
	{"", "secrets", "list"}:                                                      listed,
	{"", "secrets", "watch"}:                                                     watched,
	{"", "secrets", "update"}:                                                    "the CA is renewed after months; the tests of certs do it in seconds",
	{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "list"}:    listed,
	{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "watch"}:   watched,
	{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "list"}:  listed,
	{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "watch"}: watched,
}

const (
	listed  = "caches fill by a watch; they list where the API server cannot do that (before Kubernetes 1.34), and when a watch has fallen behind"
	applied = "a server-side apply that creates needs it, and is logged as a patch"
	watched = "the audit log leaves watches out, and these are not counted by the program"
)

// TestRights: what is granted and what is used are the same, over all tests of the
// suite. It comes last, and first does what the others had no reason to.
func TestRights(t *testing.T) {
	ns := namespace(t)
	install(t)
	rolledOut(t)
	answers(t, ns)
	for _, exercise := range []func(*testing.T, string){adopts, meetsStranger, forceDeletes, updates, resizes, claims} {
		exercise(t, ns)
	}

	grants := granted(t, "tls.mode=selfManaged")
	maps.Copy(grants, granted(t, "tls.mode=certManager"))
	maps.Copy(grants, granted(t, "controllers.app.enabled=true"))
	expected := maps.Clone(grants)
	for r := range neverSeen {
		if !grants[r] {
			t.Errorf("%s is an exception, and not granted", r)
		}
		delete(expected, r)
	}
	uses := used{}
	var unused []string
	err := poll(t.Context(), func(ctx context.Context) error {
		uses.readAudit(t)
		if err := uses.readWatches(ctx); err != nil {
			return err
		}
		if unused = without(expected, uses); len(unused) > 0 {
			return fmt.Errorf("granted, and not used: %s", strings.Join(unused, ", "))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if missing := without(uses, grants); len(missing) > 0 {
		t.Errorf("asked for, and not granted: %s", strings.Join(missing, ", "))
	}
}

// adopts: pods that a TApp has left behind.
func adopts(t *testing.T, ns string) {
	mustApply(t, ns, goodTApp("orphan", 1, "nginx:1.25"))
	settled(t, ns, "orphan")
	before := pods(t, ns, "orphan")
	kubectl(t, "--namespace", ns, "delete", "tapp", "orphan", "--cascade=orphan")
	mustApply(t, ns, goodTApp("orphan", 1, "nginx:1.25"))
	settled(t, ns, "orphan")
	if after := pods(t, ns, "orphan"); !maps.Equal(before, after) {
		t.Errorf("the pods that were to be adopted were %v, and are %v", before, after)
	}
}

// meetsStranger: a pod of somebody else has the name of an instance's.
func meetsStranger(t *testing.T, ns string) {
	kubectl(t, "--namespace", ns, "run", "taken-0", "--image=nginx:1.25")
	mustApply(t, ns, goodTApp("taken", 1, "nginx:1.25"))
	hasEvent(t, ns, "taken", "the pod taken-0 exists already, and belongs to nobody")
	kubectl(t, "--namespace", ns, "delete", "pod", "taken-0", "--now")
	settled(t, ns, "taken")
}

// forceDeletes: an instance whose node is gone.
func forceDeletes(t *testing.T, ns string) {
	manifest := strings.Replace(goodTApp("lost", 1, "nginx:1.25"), "containers:", "nodeName: no-such-node\n      containers:", 1)
	mustApply(t, ns, strings.Replace(manifest, "replicas: 1", "replicas: 1\n  forceDeletePod: true", 1))
	eventually(t, "the pod is there", func(ctx context.Context) error {
		_, err := suite.kube.CoreV1().Pods(ns).Get(ctx, "lost-0", metav1.GetOptions{})
		return err
	})
	kubectl(t, "--namespace", ns, "patch", "tapp", "lost", "--type=merge", "--patch", `{"spec": {"statuses": {"0": "Killed"}}}`)
	kubectl(t, "--namespace", ns, "wait", "--for=delete", "pod/lost-0", "--timeout="+patience.String())
	kubectl(t, "--namespace", ns, "delete", "tapp", "lost")
}

// updates: in place, and often enough for the oldest revision to go; then back. An
// annotation restarts no container, after which the kubelet would wait.
func updates(t *testing.T, ns string) {
	manifest := strings.Replace(goodTApp("often", 1, "nginx:1.25"), "replicas: 1", "replicas: 1\n  revisionHistoryLimit: 2", 1)
	for _, version := range []string{"a", "b", "c", "d", "c"} {
		mustApply(t, ns, strings.Replace(manifest, "metadata: {labels: {app: often}}", "metadata: {labels: {app: often}, annotations: {version: "+version+"}}", 1))
		settled(t, ns, "often")
	}
}

// resizes: more cpu for a pod that runs.
func resizes(t *testing.T, ns string) {
	manifest := func(cpu string) string {
		m := strings.Replace(goodTApp("larger", 1, "nginx:1.25"), "maxUnavailable: 100%", "inPlaceUpdate: {resources: true}", 1)
		return strings.Replace(m, "name: web", "name: web, resources: {requests: {cpu: "+cpu+", memory: 16Mi}}", 1)
	}
	for _, cpu := range []string{"10m", "20m"} {
		mustApply(t, ns, manifest(cpu))
		settled(t, ns, "larger")
	}
}

// claims: one that is there already, one that goes when its instance goes.
func claims(t *testing.T, ns string) {
	claim := `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-disk-0}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	mustApply(t, ns, claim)
	tapp := goodTApp("disk", 2, "nginx:1.25") + `
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	mustApply(t, ns, tapp)
	eventually(t, "the claims are there, and labelled", func(ctx context.Context) error {
		list, err := suite.kube.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{LabelSelector: "tapp_instance_key"})
		if err == nil && len(list.Items) != 2 {
			err = fmt.Errorf("%d are", len(list.Items))
		}
		return err
	})
	kubectl(t, "--namespace", ns, "scale", "tapp", "disk", "--replicas=0")
	kubectl(t, "--namespace", ns, "wait", "--for=delete", "persistentvolumeclaim/data-disk-1", "--timeout="+patience.String())
}

// hasEvent waits for an event about the TApp with these words.
func hasEvent(t *testing.T, ns, name, words string) {
	t.Helper()
	eventually(t, "event of "+name+": "+words, func(ctx context.Context) error {
		list, err := suite.kube.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range list.Items {
			if strings.Contains(e.Message, words) {
				return nil
			}
			seen = append(seen, e.Message)
		}
		return fmt.Errorf("events %q", seen)
	})
}
