package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

// The application that is lost: three instances, one of which ended, with a claim each.
const application = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, uid: ns-1}
---
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: web, namespace: shop, uid: tapp-1, resourceVersion: "5", generation: 3, annotations: {team: web, tkestack.io/restored-from: older}}
spec: {replicas: 2, template: {spec: {}}, volumeClaimTemplates: [{metadata: {name: data}}]}
status: {replicas: 2, readyReplicas: 1, statuses: {"0": Running, "1": Succ}, nodes: {"0": n1}, scaleLabelSelector: app=web, observedGeneration: 3}
---
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: web-abc, namespace: shop, uid: rev-1, labels: {tkestack.io/tapp: web},
  ownerReferences: [{apiVersion: apps.tkestack.io/v1, kind: TApp, name: web, uid: tapp-1, controller: true}]}
data: {replicas: 2}
revision: 4
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-web-0, namespace: shop, uid: pvc-0, labels: {tapp_instance_key: "0"}, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {volumeName: pv-0}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-web-1, namespace: shop, uid: pvc-1, labels: {tapp_instance_key: "1"},
  ownerReferences: [{apiVersion: apps.tkestack.io/v1, kind: TApp, name: web, uid: tapp-1, controller: true}]}
spec: {volumeName: pv-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: other-1, namespace: shop, uid: pvc-2, labels: {tapp_instance_key: "1"}}
spec: {volumeName: pv-2}
`

const volumesOfIt = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-0, resourceVersion: "1"}
spec: {persistentVolumeReclaimPolicy: Retain, claimRef: {namespace: shop, name: data-web-0, uid: pvc-0}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-1, resourceVersion: "1"}
spec: {persistentVolumeReclaimPolicy: Delete, claimRef: {namespace: shop, name: data-web-1, uid: pvc-1}}
`

const space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, uid: ns-2}\n---\n"

func parsed(t *testing.T, text string) (out []runtime.Object) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// clusterOf is a cluster with these objects, which gives what is made UIDs.
func clusterOf(t *testing.T, text string) *fake.FakeDynamicClient {
	t.Helper()
	c := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		tapps: "TAppList", revisions: "ControllerRevisionList", claims: "PersistentVolumeClaimList", volumes: "PersistentVolumeList", spaces: "NamespaceList",
		appSets: "AppSetList", advDeployments: "AdvDeploymentList", secrets: "SecretList", configMaps: "ConfigMapList",
	}, parsed(t, text)...)
	c.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if u, ok := a.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured); ok {
			u.SetUID(types.UID("new-" + u.GetName()))
		}
		return false, nil, nil
	})
	return c
}

func options(c *fake.FakeDynamicClient, in string) (Options, *bytes.Buffer, *bytes.Buffer) {
	out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
	return Options{
		Streams: genericiooptions.IOStreams{In: strings.NewReader(in), Out: out, ErrOut: errOut},
		Usage:   func(err error) error { return fmt.Errorf("usage: %w", err) }, Clean: func(s string) string { return s },
		Connect: func() (*Cluster, error) { return &Cluster{Namespace: "shop", Objects: c}, nil },
	}, out, errOut
}

func backupOf(t *testing.T) string {
	t.Helper()
	o, out, errOut := options(clusterOf(t, application+"\n---\n"+volumesOfIt), "")
	command := NewBackup(o)
	command.SetArgs(nil)
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "Warning: the volume pv-1 of persistentvolumeclaim/data-web-1 -n shop is deleted with the claim (reclaim policy Delete), and its data with it\n"; errOut.String() != want {
		t.Errorf("warned of %q, want %q", errOut, want)
	}
	return out.String()
}

// TestBackup: what belongs to the TApp is in the file, in the order of a restore, without
// what the cluster made of it.
func TestBackup(t *testing.T) {
	const want = `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  annotations:
    backup.tkestack.io/uid: pvc-0
  labels:
    tapp_instance_key: "0"
  name: data-web-0
  namespace: shop
spec:
  volumeName: pv-0
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  annotations:
    backup.tkestack.io/owner: web
    backup.tkestack.io/uid: pvc-1
  labels:
    tapp_instance_key: "1"
  name: data-web-1
  namespace: shop
spec:
  volumeName: pv-1
---
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata:
  annotations:
    backup.tkestack.io/uid: tapp-1
    team: web
  name: web
  namespace: shop
spec:
  replicas: 2
  template:
    spec: {}
  volumeClaimTemplates:
  - metadata:
      name: data
status:
  nodes:
    "0": n1
  scaleLabelSelector: app=web
  statuses:
    "0": Running
    "1": Succ
---
apiVersion: apps/v1
data:
  replicas: 2
kind: ControllerRevision
metadata:
  annotations:
    backup.tkestack.io/owner: web
    backup.tkestack.io/uid: rev-1
  labels:
    tkestack.io/tapp: web
  name: web-abc
  namespace: shop
revision: 4
`
	if got := backupOf(t); got != want {
		t.Errorf("got\n%s", got)
	}
}

func restoreInto(t *testing.T, c *fake.FakeDynamicClient, file string, args ...string) (out, errOut string, err error) {
	t.Helper()
	o, stdout, stderr := options(c, file)
	command := NewRestore(o)
	command.SetArgs(append([]string{"-f", "-"}, args...))
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

const restored = `persistentvolumeclaim/data-web-0 -n shop restored
persistentvolumeclaim/data-web-1 -n shop restored
tapp.apps.tkestack.io/web -n shop restored
controllerrevision.apps/web-abc -n shop restored
`

// written tells the writes of a client, in their order for the TApp, and how many there were.
func written(c *fake.FakeDynamicClient) (all int, ofTApp []string) {
	for _, a := range c.Actions() {
		if slices.Contains([]string{"create", "patch", "update", "delete"}, a.GetVerb()) {
			all++
			if a.GetResource().Resource == "tapps" {
				ofTApp = append(ofTApp, strings.TrimSuffix(a.GetVerb()+"/"+a.GetSubresource(), "/"))
			}
		}
	}
	return all, ofTApp
}

// TestRestore: all is back, with the new TApp as the owner; once more changes nothing.
func TestRestore(t *testing.T) {
	c, file := clusterOf(t, space+volumesOfIt), backupOf(t)
	out, errOut, err := restoreInto(t, c, file, "--dry-run")
	if all, _ := written(c); err != nil || all > 0 || out != strings.ReplaceAll(restored, "restored\n", "restored (dry run)\n") {
		t.Fatalf("dry run: %v, %d writes, %s%s", err, all, out, errOut)
	}
	if out, errOut, err = restoreInto(t, c, file); err != nil || out != restored {
		t.Fatalf("%v\n%s%s", err, out, errOut)
	}
	if _, of := written(c); !slices.Equal(of, []string{"create", "patch/status", "patch"}) {
		t.Errorf("writes of the TApp: %q", of)
	}
	ctx := t.Context()
	get := func(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
		u, err := c.Resource(resource).Namespace("shop").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	tapp := get(tapps, "web")
	if notes := tapp.GetAnnotations(); notes["tkestack.io/restored-from"] != "tapp-1" || len(notes) != 2 || notes["team"] != "web" {
		t.Errorf("annotations %v", notes)
	}
	if statuses, _, _ := unstructured.NestedStringMap(tapp.Object, "status", "statuses"); statuses["1"] != "Succ" {
		t.Errorf("status %v", tapp.Object["status"])
	}
	for _, u := range []*unstructured.Unstructured{get(revisions, "web-abc"), get(claims, "data-web-1")} {
		if controllerOf(u) != "new-web" || u.GetAnnotations()[annotationUID] != "" {
			t.Errorf("%s has the owner %q", nameOf(u), controllerOf(u))
		}
	}
	if claim := get(claims, "data-web-0"); controllerOf(claim) != "" {
		t.Errorf("a claim that is kept is owned by %q", controllerOf(claim))
	}
	for _, name := range []string{"pv-0", "pv-1"} {
		volume, err := c.Resource(volumes).Get(ctx, name, metav1.GetOptions{})
		if uid, found, _ := unstructured.NestedString(volume.Object, "spec", "claimRef", "uid"); err != nil || found {
			t.Errorf("volume %s still waits for %q (%v)", name, uid, err)
		}
	}
	c.ClearActions()
	out, errOut, err = restoreInto(t, c, file)
	if all, _ := written(c); err != nil || all > 0 || out != strings.ReplaceAll(restored, "restored\n", "unchanged\n") {
		t.Errorf("once more: %v, %d writes, %s%s", err, all, out, errOut)
	}
}

// TestInterrupted: a restore that ends before any of its writes is finished by the next
// one, and until then the TApp is held.
func TestInterrupted(t *testing.T) {
	file := backupOf(t)
	whole := clusterOf(t, space+volumesOfIt)
	if _, _, err := restoreInto(t, whole, file); err != nil {
		t.Fatal(err)
	}
	total, _ := written(whole)
	for n := range total {
		c, left := clusterOf(t, space+volumesOfIt), n
		down := errors.New("the API server is away")
		for _, verb := range []string{"create", "patch"} {
			c.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				left--
				return left < 0, nil, down
			})
		}
		if _, _, err := restoreInto(t, c, file); !errors.Is(err, down) || !strings.Contains(err.Error(), "Run the same command again to finish") {
			t.Fatalf("after %d writes: %v", n, err)
		}
		if u, err := c.Resource(tapps).Namespace("shop").Get(t.Context(), "web", metav1.GetOptions{}); err == nil && u.GetAnnotations()["tkestack.io/restoring"] == "" {
			t.Errorf("after %d of %d writes the TApp is not held", n, total)
		}
		left = 1000
		if _, errOut, err := restoreInto(t, c, file); err != nil {
			t.Errorf("again after %d writes: %v %s", n, err, errOut)
		}
		revision, err := c.Resource(revisions).Namespace("shop").Get(t.Context(), "web-abc", metav1.GetOptions{})
		tapp, err2 := c.Resource(tapps).Namespace("shop").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || err2 != nil || controllerOf(revision) != string(tapp.GetUID()) || tapp.GetAnnotations()["tkestack.io/restoring"] != "" {
			t.Errorf("again after %d writes: %v %v", n, revision, tapp)
		}
	}
}

// TestRefusals: what is there and is not the same is told, and nothing is written.
func TestRefusals(t *testing.T) {
	tapp := func(more string) string {
		return "---\napiVersion: apps.tkestack.io/v1\nkind: TApp\nmetadata: {name: web, namespace: shop, uid: foreign, creationTimestamp: 2026-11-25T01:00:00Z" + more + "}\n"
	}
	for name, c := range map[string]struct {
		cluster string
		args    []string
		want    string // empty: it is restored
	}{
		"no namespace": {volumesOfIt, nil, "tapp.apps.tkestack.io/web -n shop: the namespace is missing or being deleted; wait until it is gone, and make it again: kubectl create namespace shop\n"},
		"another TApp": {space + volumesOfIt + tapp(""), nil, "tapp.apps.tkestack.io/web -n shop: another one of this name is there, made at 2026-11-25T01:00:00Z; delete or rename one of them\n"},
		"dying":        {space + volumesOfIt + tapp(", deletionTimestamp: 2026-11-25T01:00:00Z"), nil, "tapp.apps.tkestack.io/web -n shop: it is there, and being deleted; wait until it is gone\n"},
		"a volume is gone": {space + strings.Split(volumesOfIt, "\n---\n")[0], nil,
			"persistentvolumeclaim/data-web-1 -n shop: its volume pv-1 is gone, and its data with it; bring the volume back, or have --new-volumes make an empty one\n"},
		"a new volume":      {space + strings.Split(volumesOfIt, "\n---\n")[0], []string{"--new-volumes"}, ""},
		"a volume of other": {space + strings.ReplaceAll(volumesOfIt, "name: data-web-1", "name: theirs"), nil, "persistentvolumeclaim/data-web-1 -n shop: its volume pv-1 is held by the claim shop/theirs\n"},
		"a volume ends":     {space + strings.ReplaceAll(volumesOfIt, "name: pv-1,", "name: pv-1, deletionTimestamp: 2026-11-25T01:00:00Z,"), nil, "persistentvolumeclaim/data-web-1 -n shop: its volume pv-1 is being deleted\n"},
		"another claim": {space + volumesOfIt + "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-web-0, namespace: shop, uid: x}\nspec: {volumeName: pv-9}\n", nil,
			`persistentvolumeclaim/data-web-0 -n shop: a claim of this name is there with the volume "pv-9", and this one had "pv-0"; delete the claim, or take it out of the file` + "\n"},
		"a claim of somebody": {space + volumesOfIt + "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-web-1, namespace: shop, uid: x, ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: theirs, controller: true}]}\nspec: {volumeName: pv-1}\n", nil,
			"persistentvolumeclaim/data-web-1 -n shop: it is there, and something else is its controller; delete it, or take it out of the file\n"},
		"another revision": {space + volumesOfIt + "---\napiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {name: web-abc, namespace: shop, uid: x}\ndata: {replicas: 3}\nrevision: 1\n", nil,
			"controllerrevision.apps/web-abc -n shop: a revision of this name is there with other content; delete one of them\n"},
		"an orphaned revision": {space + volumesOfIt + "---\napiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {name: web-abc, namespace: shop, uid: x}\ndata: {replicas: 2}\nrevision: 1\n", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(t, c.cluster)
			_, errOut, err := restoreInto(t, cluster, backupOf(t), c.args...)
			if c.want == "" {
				if err != nil {
					t.Errorf("%v\n%s", err, errOut)
				}
				return
			}
			if all, _ := written(cluster); all > 0 {
				t.Errorf("%d writes", all)
			}
			if err == nil || !strings.HasPrefix(err.Error(), "nothing was restored, because ") || !strings.Contains("\n"+errOut, "\n"+c.want) {
				t.Errorf("got  %v\n%s\nwant %s", err, errOut, c.want)
			}
		})
	}
}

// TestBadFiles: each is refused before anything is asked.
func TestBadFiles(t *testing.T) {
	const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a, namespace: b, annotations: {backup.tkestack.io/uid: c}}\n"
	for name, c := range map[string]struct{ file, want string }{
		"empty":          {"# nothing\n---\n", "reading the backup: the file has no objects"},
		"another kind":   {"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\n", `reading the backup: document 1: Secret "a" of "v1" is nothing that kubectl tapp backup writes: use kubectl apply`},
		"no namespace":   {"apiVersion: apps.tkestack.io/v1\nkind: TApp\nmetadata: {name: a}\n", "reading the backup: document 1: metadata.name or metadata.namespace of a TApp is missing"},
		"not from here":  {"apiVersion: apps.tkestack.io/v1\nkind: TApp\nmetadata: {name: a, namespace: b}\n", "reading the backup: document 1: tapp.apps.tkestack.io/a -n b lacks the annotation backup.tkestack.io/uid: it is not from kubectl tapp backup"},
		"twice":          {claim + "---\n" + claim, "reading the backup: document 2: persistentvolumeclaim/a -n b is there twice"},
		"no YAML":        {claim + "---\na: [b", "reading the backup: reading document 2: error converting YAML to JSON: yaml: line 1: did not find expected ',' or ']'"},
		"a large object": {claim + "# " + strings.Repeat("x", maxDocument), fmt.Sprintf("reading the backup: reading document 1: it has more than %d bytes", maxDocument)},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(t, space)
			_, _, err := restoreInto(t, cluster, c.file)
			if err == nil || err.Error() != c.want || len(cluster.Actions()) > 0 {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	for _, args := range [][]string{{}, {"-f", "x", "--dry-run=maybe"}} {
		o, _, _ := options(clusterOf(t, ""), "")
		command := NewRestore(o)
		command.SetArgs(args)
		command.SetErr(io.Discard)
		command.SetOut(io.Discard)
		if err := command.ExecuteContext(context.Background()); err == nil || !strings.HasPrefix(err.Error(), "usage: ") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
