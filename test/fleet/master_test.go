//go:build cluster

package fleet

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// app is an AppSet in these clusters, with two podSets in each.
func app(name, deployType, version string, replicas int, clusters ...string) string {
	out := fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: %s}
spec:
  updateStrategy: {maxConcurrentClusters: 100%%}
  serviceName: inner.example.com
  meta: {sym-available-zone: bj4}
  podSpec:
    deployType: %s
    template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: %s, image: nginx}]}}
  clusterTopology:
    clusters:`, name, deployType, name)
	for _, c := range clusters {
		out += fmt.Sprintf("\n    - {name: %s, podSets: [{name: %s-gz01-canary, replicas: 1, version: %s}, {name: %s-gz01-blue, replicas: %d, version: %s}]}", c, name, version, name, replicas, version)
	}
	return out
}

// TestAppSet: one application in three clusters, as each type; it follows changes, edits in
// a member are put right, and it goes without a trace. It is written no more than it has
// to be.
func TestAppSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ deployType, kind string }{{"InPlaceSet", "tapp"}, {"StatefulSet", "statefulset"}, {"deployment", "deployment"}} {
		t.Run(c.kind, func(t *testing.T) {
			r := newRig(t)
			hub, log := r.on(r.hub), r.on(r.hub).FollowAudit()
			began := time.Now()
			hub.KubectlWith(app("shop", c.deployType, "v1", 2, "member1", "member2", "member3"), "apply", "--filename", "-")
			r.shows(r.hub, "Running 9 9 v1", "get", "as", "shop", columns)
			writes := r.writes(r.hub, log)
			most := 4 + int(time.Since(began)/(10*time.Second)) // progress is told that often
			if statuses := writes["patch appsets/status"]; statuses > most {
				t.Errorf("%d statuses, want %d at most", statuses, most)
			}
			delete(writes, "patch appsets/status")
			if want := map[string]int{"patch appsets": 1, "create controllerrevisions": 2, "patch controllerrevisions": 1}; !maps.Equal(writes, want) {
				t.Errorf("on the hub it wrote %v, want %v", writes, want)
			}
			if got, want := hub.Kubectl("get", "as"), "NAME   DESIRED   AVAILABLE   UNAVAILABLE   VERSION   STATUS    AGE\nshop   9         9           0             v1        Running"; !strings.HasPrefix(got, want) {
				t.Errorf("kubectl get as:\n%s", got)
			}
			for _, m := range r.members {
				r.shows(m, "Running 3 3 v1", "get", "ad", "shop", columns)
				r.shows(m, "shop-gz01-blue shop-gz01-canary", "get", c.kind, "--output=jsonpath={.items[*].metadata.name}")
				r.shows(m, "shop "+m.name+" gz01 blue bj4", "get", "pods", "--selector=release=shop-gz01-blue",
					"--output=jsonpath={.items[0].metadata.labels.app} {.items[0].metadata.labels.sym-cluster-info} {.items[0].metadata.labels.sym-ldc} {.items[0].metadata.labels.sym-group} {.items[0].metadata.labels.sym-available-zone}")
			}
			r.on(r.members[1]).Kubectl("patch", "ad", "shop", "--type=json", `--patch=[{"op": "replace", "path": "/spec/topology/podSets/1/replicas", "value": 7}]`)
			r.shows(r.members[1], "2", "get", "ad", "shop", "--output=jsonpath={.spec.topology.podSets[1].replicas}")
			hub.KubectlWith(app("shop", c.deployType, "v2", 3, "member1", "member2", "member3"), "apply", "--filename", "-")
			r.shows(r.hub, "Running 12 12 v2", "get", "as", "shop", columns)
			hub.Kubectl("wait", "--for=condition=Ready", "as/shop", "--timeout=5m")
			for _, m := range r.members {
				r.shows(m, strings.TrimSpace(strings.Repeat("nginx:v2 ", 4)), "get", "pods", "--output=jsonpath={.items[*].spec.containers[0].image}")
			}
			r.rests(r.hub, hub.FollowAudit())
			hub.Kubectl("delete", "as", "shop", "--timeout=5m")
			for _, m := range r.members {
				r.shows(m, "", "get", "advdeployments,tapps,statefulsets,deployments,services,pods", "--output=name")
			}
		})
	}
}

// TestClusterLeaves: a cluster that is taken out keeps its part until the others are done,
// and one that is not registered is told and harms no other.
func TestClusterLeaves(t *testing.T) {
	r := newRig(t)
	hub := r.on(r.hub)
	hub.KubectlWith(app("shop", "InPlaceSet", "v1", 2, "member1", "member2"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 6 6 v1", "get", "as", "shop", columns)
	hub.KubectlWith(app("shop", "InPlaceSet", "v1", 2, "member1", "MEMBER3"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 6 6 v1", "get", "as", "shop", columns)
	r.shows(r.members[1], "", "get", "advdeployments,tapps,pods", "--output=name")
	hub.KubectlWith(app("shop", "InPlaceSet", "v1", 2, "member1", "nowhere"), "apply", "--filename", "-")
	r.shows(r.hub, "Unknown 6 3 v1", "get", "as", "shop", columns)
	r.shows(r.hub, "Unregistered", "get", "as", "shop", `--output=jsonpath={.status.aggrStatus.clusters[?(@.name=="nowhere")].state}`)
	hub.KubectlWith(app("shop", "InPlaceSet", "v1", 2, "member1"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 3 3 v1", "get", "as", "shop", columns)
	hub.Kubectl("delete", "as", "shop", "--timeout=5m")
}
