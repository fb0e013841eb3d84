//go:build cluster

package install

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
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
	r := newRig(t)
	install(t)
	rolledOut(t)
	r.answers()
	for _, exercise := range []func(*rig){adopts, meetsStranger, meetsRevision, forceDeletes, updates, resizes, claims} {
		exercise(r)
	}

	grants := granted(t, releaseName, "tls.mode=selfManaged")
	maps.Copy(grants, granted(t, releaseName, "tls.mode=certManager"))
	maps.Copy(grants, granted(t, releaseName, "controllers.app.enabled=true"))
	expected := maps.Clone(grants)
	for r := range neverSeen {
		if !grants[r] {
			t.Errorf("%s is an exception, and not granted", r)
		}
		delete(expected, r)
	}
	uses := used{}
	var unused []string
	err := cluster.Poll(t.Context(), patience, func(ctx context.Context) error {
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
	// The kinds of the fleet are on in one test alone, which does not use all of their rights.
	maps.Copy(grants, granted(t, releaseName, everyKind...))
	if missing := without(uses, grants); len(missing) > 0 {
		t.Errorf("asked for, and not granted: %s", strings.Join(missing, ", "))
	}
}

// adopts: pods that a TApp has left behind.
func adopts(r *rig) {
	r.apply(goodTApp("orphan", 1, "nginx:1.25"))
	r.WaitReady("orphan")
	before := r.pods("orphan")
	r.Kubectl("delete", "tapp", "orphan", "--cascade=orphan")
	r.apply(goodTApp("orphan", 1, "nginx:1.25"))
	r.WaitReady("orphan")
	if after := r.pods("orphan"); !maps.Equal(before, after) {
		r.Errorf("the pods that were to be adopted were %v, and are %v", before, after)
	}
}

// meetsStranger: a pod of somebody else has the name of an instance's.
func meetsStranger(r *rig) {
	r.Kubectl("run", "taken-0", "--image=nginx:1.25")
	r.apply(goodTApp("taken", 1, "nginx:1.25"))
	r.WaitEvent("taken", "", "", "the pod taken-0 exists already, and belongs to nobody")
	r.Kubectl("delete", "pod", "taken-0", "--now")
	r.WaitReady("taken")
}

// meetsRevision: a revision of somebody else has the name of the TApp's.
func meetsRevision(r *rig) {
	manifest := goodTApp("renamed", 1, "nginx:1.25")
	r.apply(manifest)
	r.WaitReady("renamed")
	list, err := r.Kube.AppsV1().ControllerRevisions(r.NS).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	var name string
	for _, revision := range list.Items {
		if strings.HasPrefix(revision.Name, "renamed-") {
			name = revision.Name
		}
	}
	r.Kubectl("delete", "tapp", "renamed")
	r.Kubectl("wait", "--for=delete", "controllerrevision/"+name, "--timeout="+patience.String())
	r.apply("{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: " + name + "}, revision: 1, data: {somebody: else}}")
	r.apply(manifest)
	r.WaitEvent("renamed", "", "", "the revision "+name+" exists already, and does not belong to the TApp; delete it to make room")
	r.Kubectl("delete", "controllerrevision", name)
	r.WaitReady("renamed")
}

// forceDeletes: an instance whose node is gone.
func forceDeletes(r *rig) {
	manifest := strings.Replace(goodTApp("lost", 1, "nginx:1.25"), "containers:", "nodeName: no-such-node\n      containers:", 1)
	r.apply(strings.Replace(manifest, "replicas: 1", "replicas: 1\n  forceDeletePod: true", 1))
	r.Eventually("the pod is there", func(ctx context.Context) error {
		_, err := r.Kube.CoreV1().Pods(r.NS).Get(ctx, "lost-0", metav1.GetOptions{})
		return err
	})
	r.Kubectl("patch", "tapp", "lost", "--type=merge", "--patch", `{"spec": {"statuses": {"0": "Killed"}}}`)
	r.Kubectl("wait", "--for=delete", "pod/lost-0", "--timeout="+patience.String())
	r.Kubectl("delete", "tapp", "lost")
}

// updates: in place, and often enough for the oldest revision to go; then back. An
// annotation restarts no container, after which the kubelet would wait.
func updates(r *rig) {
	manifest := strings.Replace(goodTApp("often", 1, "nginx:1.25"), "replicas: 1", "replicas: 1\n  revisionHistoryLimit: 2", 1)
	for _, version := range []string{"a", "b", "c", "d", "c"} {
		r.apply(strings.Replace(manifest, "metadata: {labels: {app: often}}", "metadata: {labels: {app: often}, annotations: {version: "+version+"}}", 1))
		r.WaitReady("often")
	}
}

// resizes: more cpu for a pod that runs.
func resizes(r *rig) {
	manifest := func(cpu string) string {
		m := strings.Replace(goodTApp("larger", 1, "nginx:1.25"), "maxUnavailable: 100%", "inPlaceUpdate: {resources: true}", 1)
		return strings.Replace(m, "name: web", "name: web, resources: {requests: {cpu: "+cpu+", memory: 16Mi}}", 1)
	}
	for _, cpu := range []string{"10m", "20m"} {
		r.apply(manifest(cpu))
		r.WaitReady("larger")
	}
}

// claims: one that was made by hand, with a label for which StatefulSets are asked, is used
// and kept; one that the TApp made goes when its instance goes.
func claims(r *rig) {
	claim := `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-disk-0, labels: {team: blue}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	r.apply(claim)
	tapp := goodTApp("disk", 2, "nginx:1.25") + `
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	r.apply(tapp)
	r.Kubectl("patch", "tapp", "disk", "--type=merge", "--patch", `{"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}}`)
	r.Eventually("the claims are marked, and the TApp owns the one that it made", func(ctx context.Context) error {
		list, err := r.Kube.CoreV1().PersistentVolumeClaims(r.NS).List(ctx, metav1.ListOptions{LabelSelector: "tapp_instance_key"})
		if err != nil {
			return err
		}
		marked, owned := 0, 0
		for _, c := range list.Items {
			if c.Annotations[tappv1.AnnotationClaimOf] != "" {
				marked++
			}
			owned += len(c.OwnerReferences)
		}
		if marked != 2 || owned != 1 {
			return fmt.Errorf("of %d claims %d are marked, and %d owned", len(list.Items), marked, owned)
		}
		return nil
	})
	r.Kubectl("scale", "tapp", "disk", "--replicas=0")
	r.Kubectl("wait", "--for=delete", "persistentvolumeclaim/data-disk-1", "--timeout="+patience.String())
	r.Kubectl("wait", "tapp", "disk", "--for=jsonpath={.status.conditions[?(@.type=='Progressing')].message}="+
		"nothing is left to do; claims that were there before the TApp are kept, though whenScaled is Delete: data-disk-0", "--timeout="+patience.String())
	r.Kubectl("get", "persistentvolumeclaim", "data-disk-0")
}
