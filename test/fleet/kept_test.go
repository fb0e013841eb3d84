//go:build cluster

package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// TestKept: after a halt, an instance that ran the stable content comes back with it, whatever
// becomes of its pod (F10); and a return leaves alone who never changed.
func TestKept(t *testing.T) {
	r := newRig(t)
	hub, m := r.on(r.hub), r.members[1]
	kept := func(image string) string {
		return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: shop}
spec:
  progressDeadlineSeconds: 600
  updateStrategy: {maxUnavailable: 1}
  podSpec: {deployType: InPlaceSet, template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: shop, image: '%s'}]}}}
  clusterTopology: {clusters: [{name: member2, podSets: [{name: shop-gz01-blue, replicas: 3}]}]}`, image)
	}
	hub.KubectlWith(kept("nginx:v1"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 3 3 v1", "get", "as", "shop", columns)
	first := r.on(m).Kubectl("get", "pod", "shop-gz01-blue-1", "--output=jsonpath={.metadata.uid}")
	hub.KubectlWith(bad(kept("nginx:v2")), "apply", "--filename", "-")
	r.images(m, "nginx:v2 nginx:v1 nginx:v1")
	r.shows(r.hub, "2", "get", "as", "shop", available)
	r.expire(r.hub, "as", "shop")
	r.shows(r.hub, "Halted 3 2", "get", "as", "shop", `--output=jsonpath={.status.aggrStatus.status} {.status.aggrStatus.desired} {.status.aggrStatus.available}`)
	r.images(m, "nginx:v2 nginx:v1 nginx:v1")
	r.on(m).Kubectl("delete", "pod", "shop-gz01-blue-2")
	r.shows(r.hub, "Halted 3 2", "get", "as", "shop", `--output=jsonpath={.status.aggrStatus.status} {.status.aggrStatus.desired} {.status.aggrStatus.available}`)
	r.images(m, "nginx:v2 nginx:v1 nginx:v1")
	hub.KubectlWith(kept("nginx:v1"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 3 3 v1", "get", "as", "shop", columns)
	r.shows(m, "", "get", "tapp", "shop-gz01-blue", "--output=jsonpath={.spec.templates}{.spec.templatePool}")
	if now := r.on(m).Kubectl("get", "pod", "shop-gz01-blue-1", "--output=jsonpath={.metadata.uid}"); strings.TrimSpace(now) != strings.TrimSpace(first) {
		t.Errorf("an instance that never changed was made anew: %s, %s", first, now)
	}
	r.remove()
}
