//go:build cluster

package release

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/test/cluster"
)

// control runs the controller of AdvDeployments until the test ends, with all rights for
// the charts of the namespace.
func (r *rig) control(flags ...string) {
	r.t.Helper()
	account := "system:serviceaccount:" + r.namespace + ":tapp-release"
	r.kubectl("create", "clusterrolebinding", r.namespace, "--clusterrole=cluster-admin", "--user="+account)
	p, err := r.Launch("controller", append([]string{"--controllers", "advdeployment", "--namespace", r.namespace, "--charts-anywhere", "--leader-elect=false", "--v", "3"}, flags...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Log(p.Tail(40))
		}
		if err := p.Stop(); err != nil {
			r.t.Error(err)
		}
		_, _ = r.Command(context.WithoutCancel(r.t.Context()), "", "kubectl", "delete", "clusterrolebinding", r.namespace)
	})
	if err := p.WaitReady(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// kubectl in the namespace; it must succeed.
func (r *rig) kubectl(args ...string) string {
	r.t.Helper()
	return r.kubectlWith("", args...)
}

func (r *rig) kubectlWith(input string, args ...string) string {
	r.t.Helper()
	out, err := r.Command(r.t.Context(), input, "kubectl", append(args, "--namespace", r.namespace)...)
	if err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(out)
}

// packed is the archive of a public chart, and its file.
func (r *rig) packed(name string) (archive []byte, file string) {
	r.t.Helper()
	for _, c := range publicCharts {
		if c.name != name {
			continue
		}
		packages := r.t.TempDir()
		r.helm("package", folderOf(r.t, c.module, c.sum, c.folder), "--destination", packages)
		files, err := filepath.Glob(filepath.Join(packages, "*.tgz"))
		if err != nil || len(files) != 1 {
			r.t.Fatalf("helm package made %v, %v", files, err)
		}
		if archive, err = os.ReadFile(files[0]); err != nil {
			r.t.Fatal(err)
		}
		return archive, files[0]
	}
	r.t.Fatalf("no chart %s", name)
	return nil, ""
}

// home is where one release of a chart lives.
type home struct {
	*rig
	release, workload string
	// seen are all objects that it ever had.
	seen map[string]*unstructured.Unstructured
}

// of replaces HOME by the release.
func (h *home) of(text string) string { return strings.ReplaceAll(text, "HOME", h.release) }

// apply the release as the podSet of an AdvDeployment.
func (h *home) apply(archive []byte, values string, replicas int) {
	h.t.Helper()
	h.kubectlWith(fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AdvDeployment
metadata: {name: %[1]s}
spec:
  podSpec:
    deployType: helm
    chart: {rawChart: %[2]s}
    rawValues: %[3]q
  topology:
    podSets: [{name: %[1]s, replicas: %[4]d, meta: {workload.dmall.com/workload: %[5]s}}]`,
		h.release, base64.StdEncoding.EncodeToString(archive), h.of(values), replicas, h.of(h.workload)), "apply", "--server-side", "--filename", "-")
}

// runs waits until the podSet's instances are available, and all of its release is applied.
func (h *home) runs(replicas int) {
	h.t.Helper()
	cluster.Eventually(h.t, "the release runs", func(context.Context) error {
		got := h.kubectl("get", "advdeployment", h.release, `--output=jsonpath={.metadata.generation} {.status.observedGeneration} {.status.aggrStatus.status} {.status.aggrStatus.available} {.status.conditions[?(@.type=="Stalled")].message}`)
		generation, rest, _ := strings.Cut(got, " ")
		want := fmt.Sprintf("%s Running %d nothing is in the way", generation, replicas)
		return cluster.When(rest != want, got)
	})
}

func (h *home) scaled() (n int) {
	_, _ = fmt.Sscan(h.kubectl("get", "deployment", h.of(h.workload), "--output=jsonpath={.spec.replicas}"), &n)
	return n
}

// mapper of the cluster's kinds, as they are now.
func (h *home) mapper() (meta.RESTMapper, *dynamic.DynamicClient) {
	h.t.Helper()
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(h.Config))
	if err != nil {
		h.t.Fatal(err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups), dynamic.NewForConfigOrDie(h.Config)
}

// find an object as the API server has it; nil: there is none.
func (h *home) find(kinds meta.RESTMapper, client dynamic.Interface, o *unstructured.Unstructured) *unstructured.Unstructured {
	h.t.Helper()
	gvk := o.GroupVersionKind()
	mapping, err := kinds.RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}, gvk.Version)
	if err != nil {
		h.t.Fatal(err)
	}
	objects := client.Resource(mapping.Resource)
	var in dynamic.ResourceInterface = objects
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := o.GetNamespace()
		if namespace == "" {
			namespace = h.namespace
		}
		in = objects.Namespace(namespace)
	}
	out, err := in.Get(h.t.Context(), o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// live are the objects of the release's last record that there are, by what tells them
// apart in all homes.
func (h *home) live() map[string]*unstructured.Unstructured {
	h.t.Helper()
	objects, err := helm.Objects(h.helm("get", "manifest", h.release) + "\n" + h.helm("get", "hooks", h.release))
	if err != nil {
		h.t.Fatal(err)
	}
	kinds, client := h.mapper()
	if h.seen == nil {
		h.seen = map[string]*unstructured.Unstructured{}
	}
	out := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		key := h.plain(fmt.Sprint(o.GetKind(), " ", o.GetNamespace(), "/", o.GetName()))
		h.seen[key] = o.Unstructured
		if is := h.find(kinds, client, o.Unstructured); is != nil {
			out[key] = is
		}
	}
	return out
}

// remain are the objects that there still are of all that it ever had.
func (h *home) remain() (out []string) {
	h.t.Helper()
	kinds, client := h.mapper()
	for _, key := range slices.Sorted(maps.Keys(h.seen)) {
		if is := h.find(kinds, client, h.seen[key]); is != nil && is.GetDeletionTimestamp() == nil {
			out = append(out, key)
		}
	}
	return out
}

// plain is text without the names that differ between homes.
func (h *home) plain(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, h.release, "RELEASE"), h.namespace, "NAMESPACE")
}

// documented are the labels and annotations that objects of podSets have beside those that
// helm gives them: docs/fleet.md says so.
var documented = []string{"workload.dmall.com/advdeployment", "workload.dmall.com/applied", "workload.dmall.com/workload", "workload.dmall.com/hook-run", "app", "release", "version", "sym-cluster-info", "sym-group", "sym-ldc", "lightningDomain0"}

// compare what the API server has of two homes, field by field. It returns how many
// objects that were.
func (h *home) compare(with *home) int {
	h.t.Helper()
	ours, theirs := h.live(), with.live()
	same(h.t, "objects", slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(theirs)))
	for key, is := range ours {
		if there := theirs[key]; there != nil {
			one, other := h.stripped(is, there), with.stripped(there, nil)
			for _, path := range slices.Sorted(maps.Keys(one)) {
				if one[path] != other[path] {
					h.t.Errorf("%s: %s is %s, and by helm %s", key, path, one[path], other[path])
				}
				delete(other, path)
			}
			if len(other) > 0 {
				h.t.Errorf("%s lacks what it has by helm: %v", key, other)
			}
		}
	}
	return len(ours)
}

// stripped are the fields of an object by their paths, without what the API server and
// controllers give it, and without the documented marks that another one lacks.
func (h *home) stripped(is, other *unstructured.Unstructured) map[string]string {
	o := is.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	delete(o.Object, "status")
	paths := [][]string{{"metadata"}, {"spec", "template", "metadata"}}
	if o.GetKind() == "Service" {
		for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			unstructured.RemoveNestedField(o.Object, "spec", field)
		}
		ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
		_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports")
	}
	for _, path := range paths {
		for _, field := range []string{"labels", "annotations"} {
			path := append(slices.Clone(path), field)
			have, found, _ := unstructured.NestedStringMap(o.Object, path...)
			if !found {
				continue
			}
			there := have
			if other != nil {
				there, _, _ = unstructured.NestedStringMap(other.Object, path...)
			}
			for key := range have {
				if strings.HasPrefix(key, "checksum/") { // of texts with the names of the home in them
					have[key] = "a checksum"
				}
			}
			maps.DeleteFunc(have, func(key, _ string) bool { return slices.Contains(documented, key) && there[key] == "" })
			unstructured.RemoveNestedField(o.Object, path...)
			if len(have) > 0 {
				_ = unstructured.SetNestedStringMap(o.Object, have, path...)
			}
		}
	}
	raw, err := o.MarshalJSON()
	if err != nil {
		h.t.Fatal(err)
	}
	var fields any
	if err := json.Unmarshal([]byte(h.plain(string(raw))), &fields); err != nil {
		h.t.Fatal(err)
	}
	out := map[string]string{}
	flatten("", fields, out)
	return out
}

// flatten a value into its leaves by their paths.
func flatten(path string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			into[path] = "{}"
		}
		for key, field := range value {
			flatten(path+"."+key, field, into)
		}
	case []any:
		for i, item := range value {
			flatten(fmt.Sprintf("%s[%d]", path, i), item, into)
		}
	default:
		into[path] = fmt.Sprintf("%#v", value)
	}
}

// forget deletes what is left, as hooks that no policy deletes.
func (h *home) forget() {
	h.t.Helper()
	kinds, client := h.mapper()
	for _, o := range h.seen {
		if is := h.find(kinds, client, o); is != nil && is.GetNamespace() != h.namespace {
			h.kubectl("delete", is.GetKind(), is.GetName())
		}
	}
}
