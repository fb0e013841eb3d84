//go:build cluster

package fleet

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

// early is an AppSet in three clusters, with its canary in one of them, and a budget of 1.
func early(image, canary string) string {
	return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: shop}
spec:
  progressDeadlineSeconds: 600
  updateStrategy: {canaryClusters: [%s], needWaitingForConfirm: true, maxUnavailable: 1}
  podSpec:
    deployType: InPlaceSet
    template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: shop, image: '%s'}]}}
  clusterTopology:
    clusters:
    - {name: member1, podSets: [{name: web, replicas: 2}]}
    - {name: member2, podSets: [{name: web, replicas: 2}]}
    - {name: member3, podSets: [{name: web, replicas: 1}]}`, canary, image)
}

// TestGoesEarly: where nothing has run everywhere yet, instances that were taken out of service and do not
// come back are repaired before their stage, which would wait for their budget.
func TestGoesEarly(t *testing.T) {
	r := newRig(t)
	hub := r.on(r.hub)
	one, two, three := r.members[0], r.members[1], r.members[2]
	r.on(three).Kubectl("create", "quota", "none", "--hard=pods=0") // nothing comes up there
	hub.KubectlWith(early("nginx:v1", "member2"), "apply", "--filename", "-")
	r.shows(r.hub, "Installing 5 4 v1", "get", "as", "shop", columns)
	hub.KubectlWith(bad(early("nginx:v2", "member2")), "apply", "--filename", "-")
	r.shows(r.hub, "3", "get", "as", "shop", available)
	r.shows(r.hub, "true 1 1", "get", "as", "shop", "--output=jsonpath={.status.rollout.unproven} {.status.aggrStatus.clusters[1].available} {.status.aggrStatus.clusters[2].unAvailable}")

	good := early("nginx:v3", "member1")
	told, _ := r.hub.plugin(r.Context(), good, "plan", "--filename", "-", "--namespace", r.ns) // 2: something would change
	if !strings.Contains(told, "have this before their stage, as long as they hold the budget: member2/web, member3/web") {
		t.Errorf("it was told\n%s", told)
	}
	hub.KubectlWith(good, "apply", "--filename", "-")
	r.shows(r.hub, "the budget of 1 instances is used up, by 2", "get", "as", "shop", "--output=jsonpath={.status.aggrStatus.clusters[0].podSets[0].message}")
	r.shows(two, `{"nowhere":"here"}`, "get", "pods", selectors)
	r.expire(r.hub, "as", "shop")
	cluster.Eventually(t, "member2 is repaired, or what it was given has failed by then, too", func(context.Context) error {
		left, state := r.on(two).Kubectl("get", "pods", selectors), hub.Kubectl("get", "as", "shop", "--output=jsonpath={.status.rollout.state}")
		return cluster.When(left != "" && state != "Halted", left+" "+state)
	})
	hub.KubectlWith(good, "apply", "--filename", "-") // which sets the deadline back
	hub.Kubectl("annotate", "as", "shop", "workload.dmall.com/retry="+hub.Kubectl("get", "as", "shop", "--output=jsonpath={.status.rollout.id}"))
	// The instance of member2 that runs may wait for its stage.
	r.shows(r.hub, "WaitingForConfirm 4", "get", "as", "shop", "--output=jsonpath={.status.aggrStatus.status} {.status.aggrStatus.available}")
	r.images(one, "nginx:v3 nginx:v3")
	r.shows(two, "", "get", "pods", selectors)
	if got := hub.Kubectl("get", "confirmations", "--output=name"); got != "" {
		t.Errorf("it was confirmed: %s", got)
	}
	r.on(three).Kubectl("delete", "quota", "none")
	hub.KubectlWith(confirmation(hub.Kubectl("get", "as", "shop", gate)), "create", "--filename", "-")
	r.shows(r.hub, "Running 5 5 v3", "get", "as", "shop", columns)
	r.shows(r.hub, "", "get", "as", "shop", "--output=jsonpath={.status.rollout.unproven}")
	r.remove()
}
