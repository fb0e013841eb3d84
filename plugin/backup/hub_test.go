package backup

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// hubSpaces are the namespaces of a hub, whose UID is given.
func hubSpaces(uid string) string {
	return `
apiVersion: v1
kind: Namespace
metadata: {name: kube-system, uid: ` + uid + `}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: tapp-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: tapp-charts}
---
`
}

// onHub is what a hub has: an AppSet with its record and a revision, and what goes with it; a
// part of it and an AdvDeployment of its own; and what is not TApp's.
const onHub = `
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: web, namespace: shop, uid: as-1, resourceVersion: "5", generation: 3, finalizers: [workload.dmall.com/fleet, theirs],
  annotations: {workload.dmall.com/clusters: one=uid-one, workload.dmall.com/accept-generation: "4", team: web}}
spec: {podSpec: {chart: {chartUrl: {url: stable/web}}}}
status: {observedGeneration: 3}
---
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: web-rollout, namespace: shop, uid: rev-1, labels: {workload.dmall.com/appset-uid: as-1, workload.dmall.com/revision: record}, annotations: {workload.dmall.com/rollout: '{"id":"x-3"}'},
  ownerReferences: [{apiVersion: workload.dmall.com/v1beta1, kind: AppSet, name: web, uid: as-1, controller: true}]}
data: {}
---
apiVersion: workload.dmall.com/v1beta1
kind: AdvDeployment
metadata: {name: web, namespace: shop, uid: ad-1, labels: {workload.dmall.com/fleet-id: hub-1}}
spec: {}
---
apiVersion: workload.dmall.com/v1beta1
kind: AdvDeployment
metadata: {name: lone, namespace: shop, uid: ad-2, generation: 7}
spec: {replicas: 1}
---
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: lone-ad-1, namespace: shop, uid: rev-2, labels: {workload.dmall.com/advdeployment-uid: ad-2},
  ownerReferences: [{apiVersion: workload.dmall.com/v1beta1, kind: AdvDeployment, name: lone, uid: ad-2, controller: true}]}
data: {a: 1}
revision: 1
---
apiVersion: v1
kind: Secret
metadata: {name: one, namespace: tapp-system, uid: secret-1, labels: {ClusterOwner: sym-admin}, annotations: {workload.dmall.com/cluster-uid: uid-one, kubectl.kubernetes.io/last-applied-configuration: secret}}
data: {kubeconfig.yaml: eA==}
---
apiVersion: v1
kind: Secret
metadata: {name: both, namespace: tapp-system, uid: secret-2, labels: {ClusterOwner: sym-admin, sigs.k8s.io/multicluster-runtime-kubeconfig: "true"}}
data: {kubeconfig: eA==}
---
apiVersion: v1
kind: Secret
metadata: {name: theirs, namespace: tapp-system, uid: secret-3}
data: {password: eA==}
---
apiVersion: v1
kind: Secret
metadata: {name: tapp-chart-abc, namespace: tapp-charts, uid: secret-4, labels: {workload.dmall.com/chart: "true", workload.dmall.com/fleet-id: hub-1}}
data: {chart.tgz: eA==}
immutable: true
---
apiVersion: v1
kind: ConfigMap
metadata: {name: tapp-tombstone-abc, namespace: tapp-system, uid: cm-1, labels: {workload.dmall.com/tombstone: "true"}}
data: {cluster: two}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: old, namespace: tapp-system, uid: cm-2, labels: {ClusterOwner: sym-admin}}
data: {kubeconfig.yaml: x}
`

// backupAs runs the command on a cluster.
func backupAs(t *testing.T, c *fake.FakeDynamicClient, args ...string) (out, errOut string, err error) {
	t.Helper()
	o, stdout, stderr := options(c, "")
	command := NewBackup(o)
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// objectsOf a file, as kind and name.
func objectsOf(t *testing.T, text string) (out []string) {
	t.Helper()
	documents, err := decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range documents {
		out = append(out, u.GetKind()+"/"+u.GetName())
	}
	return out
}

const (
	leftOut = "Warning: the registrations of 3 clusters are left out, since they have credentials: -f FILE writes them into a file that only you can read, and --registrations has them here, too\n"
	haveIt  = "Warning: the backup has the credentials of 3 clusters: keep it as you keep them\n"
)

// TestBackupOfHub: what is taken of a hub. Credentials are in what only the user can read, or
// where that is asked for.
func TestBackupOfHub(t *testing.T) {
	credentials := []string{"Secret/both", "Secret/one", "ConfigMap/old"}
	always := []string{"AdvDeployment/lone", "AppSet/web", "ControllerRevision/lone-ad-1", "ControllerRevision/web-rollout"}
	whole := append([]string{"Secret/tapp-chart-abc", "ConfigMap/tapp-tombstone-abc"}, always...)
	file := filepath.Join(t.TempDir(), "all.yaml")
	for name, c := range map[string]struct {
		args []string
		want []string
		says string
	}{
		"a namespace":               {nil, append([]string{"Secret/tapp-chart-abc"}, always...), ""},
		"by name":                   {[]string{"lone"}, []string{"AdvDeployment/lone", "ControllerRevision/lone-ad-1"}, ""},
		"all":                       {[]string{"-A"}, whole, leftOut},
		"all, with credentials":     {[]string{"-A", "--registrations"}, append(credentials, whole...), haveIt},
		"a file":                    {[]string{"-A", "-f", file}, append(credentials, whole...), haveIt},
		"a file without them":       {[]string{"-A", "-f", file, "--registrations=false"}, whole, leftOut},
		"a namespace into a file":   {[]string{"-f", file}, append([]string{"Secret/tapp-chart-abc"}, always...), ""},
		"clusters of another place": {[]string{"-A", "--cluster-namespace=sym-admin"}, append([]string{"Secret/tapp-chart-abc"}, always...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := backupAs(t, clusterOf(t, hubSpaces("hub-1")+onHub), c.args...)
			if err != nil || errOut != c.says {
				t.Fatalf("%v\n%s\nwant %s", err, errOut, c.says)
			}
			if slices.Contains(c.args, file) {
				info, err := os.Stat(file)
				if err != nil || info.Mode() != 0o600 || out != "" {
					t.Fatalf("%v, %v, %q", err, info, out)
				}
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				out = string(text)
			}
			got := objectsOf(t, out)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if strings.Contains(out, "last-applied") {
				t.Error("the kubeconfig is there twice")
			}
		})
	}
}

// TestNoFleet: a cluster without the kinds of the fleet, or a user without rights to them, has
// TApps backed up as ever.
func TestNoFleet(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"not installed": {apierrors.NewNotFound(schema.GroupResource{}, ""), ""},
		"no right": {apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")),
			"Warning: advdeployments are left out: you may not list them\nWarning: appsets are left out: you may not list them\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(t, application)
			for _, of := range []string{"appsets", "advdeployments", "secrets", "configmaps"} {
				cluster.PrependReactor("list", of, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			}
			out, errOut, err := backupAs(t, cluster, "-A")
			if err != nil || errOut != c.says || !slices.Contains(objectsOf(t, out), "TApp/web") {
				t.Errorf("%v\n%s\n%s", err, errOut, out)
			}
		})
	}
	if _, _, err := backupAs(t, clusterOf(t, application), "nothing"); err == nil || err.Error() != `there is no TApp, AppSet or AdvDeployment of its own "nothing" in namespace "shop"` {
		t.Errorf("%v", err)
	}
	if _, errOut, err := backupAs(t, clusterOf(t, space)); err != nil || errOut != "Nothing to back up was found.\n" {
		t.Errorf("%v %s", err, errOut)
	}
}

func wholeHub(t *testing.T) string {
	t.Helper()
	out, _, err := backupAs(t, clusterOf(t, hubSpaces("hub-1")+onHub), "-A", "--registrations")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRestoreHub: all is back, in an order in which nothing is done for the AppSet before its
// revisions are there, which are of the new one. Once more changes nothing.
func TestRestoreHub(t *testing.T) {
	c, file := clusterOf(t, hubSpaces("hub-1")), wholeHub(t)
	out, errOut, err := restoreInto(t, c, file)
	if err != nil || errOut != "" || strings.Count(out, " restored\n") != 9 {
		t.Fatalf("%v\n%s%s", err, out, errOut)
	}
	var order []string
	for _, a := range c.Actions() {
		if slices.Contains([]string{"create", "patch"}, a.GetVerb()) && !slices.Contains(order, a.GetVerb()+" "+a.GetResource().Resource) {
			order = append(order, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	at := func(what string) int { return slices.Index(order, what) }
	if !(max(at("create secrets"), at("create configmaps")) < at("create appsets") && at("create appsets") < at("create controllerrevisions") &&
		at("create controllerrevisions") < at("patch appsets")) {
		t.Errorf("the order was %q", order)
	}
	appSet, record, lone := live(t, c, appSets, "web"), live(t, c, revisions, "web-rollout"), live(t, c, revisions, "lone-ad-1")
	if notes := appSet.GetAnnotations(); !maps.Equal(notes, map[string]string{"team": "web", "workload.dmall.com/clusters": "one=uid-one", "workload.dmall.com/restored-from": "as-1/4"}) {
		t.Errorf("annotations %v", notes)
	}
	if got := appSet.GetFinalizers(); !slices.Equal(got, []string{"workload.dmall.com/fleet"}) {
		t.Errorf("finalizers %q", got)
	}
	for _, r := range []struct {
		*unstructured.Unstructured
		label, uid string
	}{{record, "workload.dmall.com/appset-uid", "new-web"}, {lone, "workload.dmall.com/advdeployment-uid", "new-lone"}} {
		if controllerOf(r.Unstructured) != r.uid || r.GetLabels()[r.label] != r.uid {
			t.Errorf("%s is of %q, with the labels %v", r.GetName(), controllerOf(r.Unstructured), r.GetLabels())
		}
	}
	if record.GetAnnotations()["workload.dmall.com/rollout"] != `{"id":"x-3"}` {
		t.Errorf("the record is %v", record)
	}
	c.ClearActions()
	out, errOut, err = restoreInto(t, c, file)
	if all, _ := written(c); err != nil || all > 0 || strings.Count(out, " unchanged\n") != 9 {
		t.Errorf("once more: %v, %d writes, %s%s", err, all, out, errOut)
	}
}

func live(t *testing.T, c *fake.FakeDynamicClient, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := c.Resource(resource).Namespace("shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestRestoreHubInterrupted: a restore that ends before any of its writes is finished by the
// next one, and until then the AppSet is held.
func TestRestoreHubInterrupted(t *testing.T) {
	file := wholeHub(t)
	whole := clusterOf(t, hubSpaces("hub-1"))
	if _, _, err := restoreInto(t, whole, file); err != nil {
		t.Fatal(err)
	}
	total, _ := written(whole)
	for n := range total {
		c, left := clusterOf(t, hubSpaces("hub-1")), n
		down := errors.New("the API server is away")
		for _, verb := range []string{"create", "patch"} {
			c.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				left--
				return left < 0, nil, down
			})
		}
		if _, _, err := restoreInto(t, c, file); !errors.Is(err, down) {
			t.Fatalf("after %d writes: %v", n, err)
		}
		_, missing := c.Resource(revisions).Namespace("shop").Get(context.Background(), "web-rollout", metav1.GetOptions{})
		if u, err := c.Resource(appSets).Namespace("shop").Get(t.Context(), "web", metav1.GetOptions{}); err == nil && missing != nil && u.GetAnnotations()["workload.dmall.com/restoring"] == "" {
			t.Errorf("after %d of %d writes the AppSet is not held", n, total)
		}
		left = 1000
		if _, errOut, err := restoreInto(t, c, file); err != nil {
			t.Errorf("again after %d writes: %v %s", n, err, errOut)
		}
		if u := live(t, c, appSets, "web"); u.GetAnnotations()["workload.dmall.com/restoring"] != "" || controllerOf(live(t, c, revisions, "web-rollout")) != string(u.GetUID()) {
			t.Errorf("again after %d writes: %v", n, u)
		}
	}
}

// TestRestoreHubElsewhere: another hub is told of, registrations can be left out, and what is
// there with other content keeps it.
func TestRestoreHubElsewhere(t *testing.T) {
	file := wholeHub(t)
	c := clusterOf(t, hubSpaces("hub-2"))
	const warning = "Warning: the AppSets are from another hub, with the UID hub-1. TApp takes their parts over if the chart's value fleet.id is what it was there; that UID, if it was empty\n"
	if out, errOut, err := restoreInto(t, c, file, "--registrations=false"); err != nil || errOut != warning || strings.Count(out, " restored\n") != 6 || strings.Contains(out, "secret/one") {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
	changed := strings.Replace(onHub, "uid: secret-1, labels: {ClusterOwner: sym-admin}", "uid: secret-9, labels: {ClusterOwner: sym-admin}", 1)
	for name, c := range map[string]struct{ cluster, want string }{
		"renewed since":    {strings.ReplaceAll(onHub, "data: {kubeconfig.yaml: eA==}", "data: {kubeconfig.yaml: eQ==}"), ""},
		"made again":       {changed, ""},
		"another one":      {strings.ReplaceAll(changed, "data: {kubeconfig.yaml: eA==}", "data: {kubeconfig.yaml: eQ==}"), "secret/one -n tapp-system: one of this name is there with other content; delete it, or take it out of the file\n"},
		"another AppSet":   {strings.ReplaceAll(onHub, "uid: as-1,", "uid: as-9, creationTimestamp: 2026-11-25T01:00:00Z,"), "appset.workload.dmall.com/web -n shop: another one of this name is there, made at 2026-11-25T01:00:00Z; delete or rename one of them\n"},
		"another rollout":  {strings.ReplaceAll(strings.ReplaceAll(onHub, "uid: rev-1,", "uid: rev-9,"), "x-3", "x-4"), "controllerrevision.apps/web-rollout -n shop: a revision of this name is there with other content; delete one of them\n"},
		"nothing was lost": {onHub, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, errOut, err := restoreInto(t, clusterOf(t, hubSpaces("hub-1")+c.cluster), file)
			if errOut != c.want || (err == nil) != (c.want == "") {
				t.Errorf("%v\n%s\nwant %s", err, errOut, c.want)
			}
		})
	}
}

// TestWriteFile: a file that could not be written leaves the one that was there.
func TestWriteFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := clusterOf(t, hubSpaces("hub-1")+onHub)
	c.PrependReactor("list", "appsets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
	if _, _, err := backupAs(t, c, "-f", name); err == nil || err.Error() != "listing appsets: away" {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(name)
	if entries, listErr := os.ReadDir(filepath.Dir(name)); err != nil || listErr != nil || string(text) != "before" || len(entries) != 1 {
		t.Errorf("%v %q %v", err, text, entries)
	}
	if _, _, err := backupAs(t, clusterOf(t, hubSpaces("hub-1")+onHub), "-f", filepath.Join(name, "below")); err == nil || !strings.HasPrefix(err.Error(), "writing the backup: ") {
		t.Errorf("%v", err)
	}
}
