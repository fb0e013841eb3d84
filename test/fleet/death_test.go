//go:build cluster

package fleet

import (
	"context"
	"fmt"
	"testing"
)

// staged is an AppSet with a canary and a blue podSet in each of two members: the canaries
// first, then blue in the second member, then blue in the first; a gate after each.
func staged(name, image, maxFailures string) string {
	out := fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: %s}
spec:
  progressDeadlineSeconds: 600
  updateStrategy:
    needWaitingForConfirm: true
    maxUnavailable: 3
    unreachableCounts: AsLastSeen
    maxFailures: %s
    stages: [{name: canary, groups: [canary]}, {name: second, groups: [blue], clusters: [member2]}, {name: first, groups: [blue], clusters: [member1]}]
  podSpec: {deployType: InPlaceSet, template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: shop, image: '%s'}]}}}
  clusterTopology:
    clusters:`, name, maxFailures, image)
	for _, c := range []string{"member2", "member1"} {
		out += fmt.Sprintf("\n    - {name: %s, podSets: [{name: %[2]s-gz01-canary, replicas: 1}, {name: %[2]s-gz01-blue, replicas: 2}]}", c, name)
	}
	return out
}

// TestMemberDies: a member dies in mid-rollout. Without maxFailures the rollout halts, and
// goes on once the member is back and somebody asks for it; with maxFailures it passes the
// member, and brings it up when it is back. The budget holds over all of it: of its three
// instances two are taken by what was sent to the member last, which may still arrive.
func TestMemberDies(t *testing.T) {
	r := newSecond(t)
	hub, well, dead := r.on(r.hub), r.members[0], r.members[1]
	t.Cleanup(func() {
		dead.wire.heal()
		if err := r.lead(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	apps := map[string]string{"strict": "0", "lenient": "1"}
	apply := func(image string) {
		t.Helper()
		for name, failures := range apps {
			hub.KubectlWith(staged(name, image, failures), "apply", "--filename", "-")
		}
	}
	all := func(want string) {
		t.Helper()
		for name := range apps {
			r.shows(r.hub, want, "get", "as", name, columns)
		}
	}
	apply("nginx:v1")
	all("Running 6 6 v1")
	var most []func() int
	for name := range apps {
		most = append(most, r.witness(name, 6))
	}
	apply("nginx:v2")
	all("WaitingForConfirm 6 6 v1/v2")
	dead.wire.hold(toMember, toHub)
	for name := range apps {
		r.fleetVerb("confirm", name, "--stage", "canary")
	}
	for name := range apps { // which takes longer than the deadline that they get now
		r.shows(r.hub, "Offline Ready", "get", "as", name, states)
	}
	for name := range apps {
		r.expire(r.hub, "as", name)
	}
	r.shows(r.hub, "Halted", "get", "as", "strict", status)
	r.shows(r.hub, "second", "get", "as", "lenient", `--output=jsonpath={.status.rollout.stages[?(@.token)].name}`)
	apply("nginx:v2") // with its long deadline again
	generation := hub.Kubectl("get", "as", "lenient", "--output=jsonpath={.metadata.generation}")
	r.shows(r.hub, generation, "get", "as", "lenient", "--output=jsonpath={.status.observedGeneration}")
	r.fleetVerb("confirm", "lenient", "--stage", "second")
	r.shows(r.hub, "member2/lenient-gz01-canary member2/lenient-gz01-blue", "get", "as", "lenient", `--output=jsonpath={.status.rollout.passed[*]}`)
	const images = `--output=jsonpath={.items[*].spec.containers[0].image}`
	r.shows(well, "nginx:v1 nginx:v1", "get", "pods", "--selector=release=strict-gz01-blue", images)
	r.shows(well, "nginx:v2 nginx:v2", "get", "pods", "--selector=release=lenient-gz01-blue", images)
	r.shows(dead, "nginx:v1 nginx:v1", "get", "pods", "--selector=release=lenient-gz01-blue", images)

	dead.wire.heal()
	r.shows(r.hub, "Running 6 6 v2", "get", "as", "lenient", columns)
	r.shows(dead, "nginx:v2 nginx:v2", "get", "pods", "--selector=release=lenient-gz01-blue", images)
	r.shows(r.hub, "Halted 6 6 v1/v2", "get", "as", "strict", columns)
	r.fleetVerb("retry", "strict")
	r.shows(r.hub, "WaitingForConfirm 6 6 v1/v2", "get", "as", "strict", columns)
	r.fleetVerb("confirm", "strict", "--stage", "second")
	r.shows(r.hub, "Running 6 6 v2", "get", "as", "strict", columns)
	for _, most := range most {
		if n := most(); n > 3 {
			t.Errorf("%d were unavailable at once", n)
		}
	}
	for name := range apps {
		hub.Kubectl("delete", "as", name, "--timeout=5m")
	}
}

const status = `--output=jsonpath={.status.aggrStatus.status}`

// fleetVerb runs `kubectl tapp fleet` in the test's namespace of the hub, which must succeed.
func (r *rig) fleetVerb(args ...string) string {
	r.Helper()
	out, err := r.hub.plugin(r.Context(), "", append(args, "--namespace", r.ns)...)
	if err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	return out
}
