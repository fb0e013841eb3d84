//go:build cluster

package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// lone is an AdvDeployment that a user wrote, with a canary and a blue podSet.
func lone(image, strategy string) string {
	return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AdvDeployment
metadata: {name: shop}
spec:
  progressDeadlineSeconds: 600
  updateStrategy: {%s}
  podSpec:
    deployType: InPlaceSet
    template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: shop, image: '%s'}]}}
  topology: {podSets: [{name: shop-gz01-canary, replicas: 1}, {name: shop-gz01-blue, replicas: 2}]}`, strategy, image)
}

// TestLone: an AdvDeployment that no AppSet made goes through its stages and gates, halts, and
// returns, by the rights that the chart gives.
func TestLone(t *testing.T) {
	r := newRig(t)
	m := r.members[1]
	in, log := r.on(m), r.on(m).FollowAudit()
	const strategy = "upgradeType: canary|blue, needWaitingForConfirm: true, maxUnavailable: 1"
	in.KubectlWith(lone("nginx:v1", strategy), "apply", "--filename", "-")
	r.shows(m, "Running 3 3 v1", "get", "ad", "shop", columns)
	in.KubectlWith(lone("nginx:v2", strategy), "apply", "--filename", "-")
	r.shows(m, "WaitingForConfirm 3 3 v1/v2", "get", "ad", "shop", columns)
	r.images(m, "nginx:v1 nginx:v1 nginx:v2")
	in.KubectlWith(confirmation(in.Kubectl("get", "ad", "shop", gate)), "create", "--filename", "-")
	r.shows(m, "Running 3 3 v2", "get", "ad", "shop", columns)

	in.KubectlWith(bad(lone("nginx:v2", strategy)), "apply", "--filename", "-")
	r.shows(m, "2", "get", "ad", "shop", available)
	r.expire(m, "ad", "shop")
	r.shows(m, "Halted 3 2 v2", "get", "ad", "shop", columns)
	r.shows(m, "true", "get", "tapp", "shop-gz01-canary", "--output=jsonpath={.spec.paused}")
	in.KubectlWith(lone("nginx:v2", strategy), "apply", "--filename", "-")
	r.shows(m, "Running 3 3 v2", "get", "ad", "shop", columns)
	r.images(m, "nginx:v2 nginx:v2 nginx:v2")
	r.rests(m, in.FollowAudit())
	if writes := r.writes(m, log); writes["create controllerrevisions"] == 0 { // and none without the right to it
		t.Errorf("nothing was recorded: %v", writes)
	}
	in.Kubectl("delete", "ad", "shop", "--timeout=5m")
	r.shows(m, "", "get", "controllerrevisions", "--output=name")
	if out := in.Kubectl("get", "tapps,pods", "--output=name"); strings.TrimSpace(out) != "" {
		t.Errorf("left: %s", out)
	}
}
