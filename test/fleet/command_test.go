//go:build cluster

package fleet

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// TestCommands: clusters are listed, moved out of ConfigMaps, and accepted when another
// one answers; joining is refused with words where it would do harm.
func TestCommands(t *testing.T) {
	r := newSecond(t)
	hub, m, other := r.on(r.hub), r.members[0], r.members[1]
	run := func(s *site, input string, args ...string) string {
		t.Helper()
		out, err := s.plugin(t.Context(), input, args...)
		if err != nil {
			out += "(failed)"
		}
		return out
	}
	uid := func(s *site) string {
		return r.on(s).Kubectl("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")
	}
	uids := strings.NewReplacer(uid(r.hub), "HUB", uid(m), "ONE", uid(other), "TWO", m.wire.Addr().String(), "WIRE")

	// What is registered.
	if got := strings.Fields(run(r.hub, "", "clusters")); len(got) != 15 || strings.Join(got[:5], " ") != "NAME STATE SOURCE APPSETS AGE" || got[5] != "member1" || got[7] != "Secret/member1" {
		t.Errorf("clusters: %q", got)
	}
	if got, want := run(r.hub, "", "clusters", "--output", "name"), "member1\nmember2\n"; got != want {
		t.Errorf("clusters: %q", got)
	}
	if got, want := run(r.hub, "", "clusters", "--cluster-namespace", r.ns), "No clusters are registered in namespace "+r.ns+". To register one: kubectl tapp fleet join CLUSTER --context CONTEXT\n"; got != want {
		t.Errorf("clusters: %q", got)
	}

	// What joins not.
	in := "--hub-kubeconfig=" + r.hub.Kubeconfig
	for _, c := range []struct {
		at   *site
		args []string
		want string
	}{
		{r.hub, []string{"join", "x", in}, "error: cluster x is the hub itself: name its context by --context, and the hub's by --hub-context. For the hub to be a member too, give its name to the chart as fleet.selfCluster"},
		{m, []string{"join", "member2", in}, "error: cluster member2 is registered with the UID TWO, and this one is another, with the UID ONE: choose another name, or give --replace if it has taken the other's place"},
		{m, []string{"join", "x", in}, "error: the cluster with the UID ONE is registered as member1 already"},
		{m, []string{"join", "Not/a-name", in}, "error: \"not/a-name\" is no name of a cluster: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\nSee 'kubectl tapp fleet join --help' for usage."},
		{m, []string{"join"}, "error: the name of a cluster is missing\nSee 'kubectl tapp fleet join --help' for usage."},
		{m, []string{"join", "member1", in, "--allow-local=false"}, "error: cluster member1: the hub could not use its kubeconfig: server of cluster \"member\" is 127.0.0.1, which is the hub's own machine and not a member. Give another address by --server-address, or see --allow-local"},
		{r.hub, []string{"accept", "nowhere"}, "error: no cluster nowhere is registered in namespace tapp-system"},
		{r.hub, []string{"accept", "member1"}, "cluster member1 is the one that was registered, with the UID ONE"},
		{r.hub, []string{"secure", "member1"}, "error: no ConfigMap in namespace tapp-system registers a cluster member1"},
		{r.hub, []string{"secure"}, "no registration is in a ConfigMap"},
	} {
		got := strings.TrimSpace(strings.TrimSuffix(uids.Replace(run(c.at, "", c.args...)), "(failed)"))
		if got != c.want {
			t.Errorf("%s %s:\n%s\nwant\n%s", c.at.name, strings.Join(c.args, " "), got, c.want)
		}
	}

	// A Secret of somebody else keeps its name, and joining again renews the token.
	hub.Kubectl("create", "secret", "generic", "x", "--namespace", releaseSpace, "--from-literal=password=p")
	if got, want := run(m, "", "join", "x", in), "error: the Secret tapp-system/x registers no cluster, since it has no label ClusterOwner=sym-admin: it is not overwritten; choose another name\n(failed)"; got != want {
		t.Errorf("join: %s", got)
	}
	hub.Kubectl("delete", "secret", "x", "--namespace", releaseSpace)
	const tokens = "workload.dmall.com/hub-uid"
	before := r.on(m).Kubectl("get", "secrets", "--namespace", releaseSpace, "--selector="+tokens, "--output=name")
	if err := r.join(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if now := r.on(m).Kubectl("get", "secrets", "--namespace", releaseSpace, "--selector="+tokens, "--output=name"); strings.Count(now, "\n") != 1 || now == before {
		t.Errorf("the tokens of the hub were %sand are %s", before, now)
	}

	if got := r.on(m).Kubectl("auth", "can-i", "--list", "--as=system:serviceaccount:tapp-system:tapp-fleet", "--namespace=kube-system"); strings.Contains(got, "secrets") {
		t.Errorf("the hub may read Secrets of a member:\n%s", got)
	}

	// In some namespaces alone: what is in others is refused, and told.
	r.on(m).Kubectl("create", "namespace", r.ns+"-other")
	hub.Kubectl("create", "namespace", r.ns+"-other")
	if got, want := run(m, "", "join", "member1", in, "--namespaces=nowhere"), "error: cluster member1: it has no namespace nowhere: make it first, by kubectl create namespace nowhere\n(failed)"; got != want {
		t.Errorf("join: %s", got)
	}
	if err := r.join(t.Context(), m, "--namespaces", r.ns); err != nil {
		t.Fatal(err)
	}
	hub.KubectlWith(app("shop", "InPlaceSet", "v1", 2, "member1"), "apply", "--namespace", r.ns+"-other", "--filename", "-")
	r.shows(r.hub, "True Refused", "get", "as", "shop", "--namespace="+r.ns+"-other", stalled)
	hub.KubectlWith(app("here", "InPlaceSet", "v1", 2, "member1"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 3 3 v1", "get", "as", "here", columns)
	hub.Kubectl("delete", "as", "here", "--timeout=5m")
	if err := r.join(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r.shows(r.hub, "Running 3 3 v1", "get", "as", "shop", "--namespace="+r.ns+"-other", columns)
	hub.Kubectl("delete", "as", "shop", "--namespace", r.ns+"-other", "--timeout=5m")
	if got := r.on(m).Kubectl("get", "rolebindings", "--all-namespaces", "--field-selector=metadata.name=tapp-fleet-parts", "--output=name"); got != "" {
		t.Errorf("left of the rights in one namespace: %s", got)
	}

	// Out of a ConfigMap: the fleet goes on meanwhile.
	hub.KubectlWith(app("shop", "InPlaceSet", "v1", 2, "member1"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 3 3 v1", "get", "as", "shop", columns)
	asConfigMap, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": m.name, "namespace": releaseSpace, "labels": map[string]string{"ClusterOwner": "sym-admin"}},
		"data":     map[string]string{"kubeconfig.yaml": string(m.registration), "status": "Ready"}})
	if err != nil {
		t.Fatal(err)
	}
	hub.KubectlWith(string(asConfigMap), "apply", "--namespace", releaseSpace, "--filename", "-")
	if got, want := run(r.hub, "", "secure", "member1"), "cluster member1: there is a Secret member1 already, whose key status is another one; nothing is changed\nerror: not all registrations were moved\n(failed)"; got != want {
		t.Errorf("secure: %s", got)
	}
	r.unregister(m)
	if got, want := run(m, "", "join", "member1", in), "error: cluster member1 is registered by the ConfigMap tapp-system/member1: move it into a Secret first, by kubectl tapp fleet secure member1\n(failed)"; got != want {
		t.Errorf("join: %s", got)
	}
	if got, want := run(r.hub, "", "secure"), "cluster member1 is registered by the Secret tapp-system/member1, and the ConfigMap is deleted\n"; got != want {
		t.Errorf("secure: %s", got)
	}
	if got := hub.Kubectl("get", "secrets,configmaps", "--namespace", releaseSpace, "--selector=ClusterOwner=sym-admin", "--output=name"); got != "secret/member1\nsecret/member2\n" {
		t.Errorf("registered are %s", got)
	}
	if got := hub.Kubectl("get", "secret", "member1", "--namespace", releaseSpace, "--output=yaml"); strings.Contains(got, "last-applied") {
		t.Errorf("the Secret repeats what the ConfigMap said: %s", got)
	}
	hub.KubectlWith(app("shop", "InPlaceSet", "v2", 2, "member1"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 3 3 v2", "get", "as", "shop", columns)

	// A ClusterProfile registers a cluster that only the controller gets to.
	hub.KubectlWith(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "clusterprofiles.multicluster.x-k8s.io",
		"annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
		"spec": {"group": "multicluster.x-k8s.io", "scope": "Namespaced", "names": {"kind": "ClusterProfile", "plural": "clusterprofiles"},
		"versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`,
		"apply", "--filename", "-")
	hub.Kubectl("wait", "--for=condition=Established", "crd/clusterprofiles.multicluster.x-k8s.io", "--timeout=5m")
	defer hub.Kubectl("delete", "crd", "clusterprofiles.multicluster.x-k8s.io")
	hub.KubectlWith(`{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile", "metadata": {"name": "far", "annotations": {"workload.dmall.com/cluster-uid": "BEFORE"}}}`,
		"create", "--namespace", releaseSpace, "--filename", "-")
	if got, want := run(r.hub, "", "clusters", "--output", "name"), "far\nmember1\nmember2\n"; got != want {
		t.Errorf("clusters: %q", got)
	}
	if got, want := run(m, "", "join", "far", in), "error: cluster far is registered by the ClusterProfile tapp-system/far already: choose another name\n(failed)"; got != want {
		t.Errorf("join: %s", got)
	}
	if got, want := run(r.hub, "n\n", "accept", "far"), "Registered as far is the cluster with the UID BEFORE.\nWhat answers by the ClusterProfile far is another one, or will be.\n"+
		"AppSets will be installed there anew. Is that right? [y/N] error: nothing was changed\n(failed)"; got != want {
		t.Errorf("accept: %s", got)
	}
	if got, want := run(r.hub, "", "accept", "far", "--yes"), "cluster far is the one that answers next\n"; got != want {
		t.Errorf("accept: %s", got)
	}
	r.shows(r.hub, "BEFORE", "get", "clusterprofile", "far", "--namespace="+releaseSpace, `--output=jsonpath={.metadata.annotations.workload\.dmall\.com/cluster-uid}{.metadata.labels.workload\.dmall\.com/replaces-uid}`)
	if got, want := run(r.hub, "", "accept", "far"), "cluster far is registered by the ClusterProfile tapp-system/far, and the one that answers next is taken for it\n"; got != want {
		t.Errorf("accept: %s", got)
	}

	// Another cluster under the name.
	if err := r.register(t.Context(), m.name, other.registration); err != nil {
		t.Fatal(err)
	}
	r.shows(r.hub, "Mistaken", "get", "as", "shop", states)
	if got, want := uids.Replace(run(r.hub, "y\n", "accept", "member1")), "error: the cluster with the UID TWO is registered as member2 already\n(failed)"; got != want {
		t.Errorf("accept: %s", got)
	}
	r.unregister(other)
	defer func() {
		for _, s := range []*site{m, other} {
			if err := r.join(context.WithoutCancel(t.Context()), s, "--replace"); err != nil {
				t.Error(err)
			}
		}
	}()
	uids = strings.NewReplacer(uid(m), "ONE", uid(other), "TWO", other.wire.Addr().String(), "WIRE")
	const question = "Registered as member1 is the cluster with the UID ONE.\nWhat answers at https://WIRE has the UID TWO.\nAppSets will be installed there anew. Is that right? [y/N] "
	if got, want := uids.Replace(run(r.hub, "n\n", "accept", "member1")), question+"error: nothing was changed\n(failed)"; got != want {
		t.Errorf("accept: %s", got)
	}
	if got, want := uids.Replace(run(r.hub, "y\n", "accept", "Member1")), question+"cluster member1 is the one with the UID TWO from now on\n"; got != want {
		t.Errorf("accept: %s", got)
	}
	r.shows(r.hub, "Running 3 3 v2", "get", "as", "shop", columns)
	r.shows(other, "Running 3 3 v2", "get", "ad", "shop", columns)
	hub.Kubectl("delete", "as", "shop", "--timeout=5m")
	r.shows(other, "", "get", "advdeployments,tapps,pods", "--output=name")
	r.shows(m, "Running 3 3 v2", "get", "ad", "shop", columns) // which nobody may touch any more
	r.on(m).Kubectl("delete", "ad", "shop", "--timeout=5m")
}
