//go:build cluster

package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/cluster"
)

// coloured is an AppSet with a canary and a blue podSet in each of these clusters.
func coloured(image, strategy string, clusters ...string) string {
	out := fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: shop}
spec:
  progressDeadlineSeconds: 600
  updateStrategy: {%s}
  podSpec:
    deployType: InPlaceSet
    template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: shop, image: '%s'}]}}
  clusterTopology:
    clusters:`, strategy, image)
	for _, c := range clusters {
		out += fmt.Sprintf("\n    - {name: %s, podSets: [{name: shop-gz01-canary, replicas: 1}, {name: shop-gz01-blue, replicas: 2}]}", c)
	}
	return out
}

const gated = "upgradeType: canary|blue, needWaitingForConfirm: true, maxConcurrentClusters: 3, maxUnavailable: 2"

// gate that waits: the rollout's id, the stage, and the token.
const gate = `--output=jsonpath={.status.rollout.id} {.status.rollout.stage} {.status.rollout.stages[?(@.token)].token}`

// confirmation of a gate of the AppSet shop as it was shown.
func confirmation(shown string) string { return confirmationOf("shop", shown) }

func confirmationOf(app, shown string) string {
	fields := strings.Fields(shown)
	return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: Confirmation
metadata: {name: %[4]s-%[3]s}
spec: {appSet: %[4]s, rollout: %[1]s, stage: %[2]s, token: %[3]s, confirmedBy: ann}`, fields[0], fields[1], fields[2], app)
}

// witness looks at the pods of an AppSet in all members until it is stopped, and says how many were
// unavailable at one instant: those that were so in two looks at all members, and did not
// change between them.
func (r *rig) witness(app string, desired int) (most func() int) {
	r.Helper()
	ctx, stop := context.WithCancel(r.Context())
	worst := 0
	look := func() map[string]string {
		available := map[string]string{}
		for _, m := range r.members {
			pods, err := m.Kube.CoreV1().Pods(r.ns).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
			if err != nil {
				return nil
			}
			for i := range pods.Items {
				if isAvailable(&pods.Items[i]) {
					available[m.name+"/"+pods.Items[i].Name] = string(pods.Items[i].UID)
				}
			}
		}
		return available
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		before := look()
		for ctx.Err() == nil {
			now := look()
			if before == nil || now == nil {
				before = now
				continue
			}
			union := len(before)
			for name := range now {
				if before[name] == "" {
					union++
				}
			}
			worst = max(worst, desired-union)
			before = now
		}
	})
	return func() int {
		stop()
		watching.Wait()
		return worst
	}
}

func isAvailable(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// images that run in a member, of the canary and then of blue.
func (r *rig) images(m *site, want string) {
	r.Helper()
	r.shows(m, want, "get", "pods", "--sort-by=.metadata.name", "--output=jsonpath={.items[*].spec.containers[0].image}")
}

// TestColours: canary, confirm, blue, within one budget for all members; a Confirmation
// that is replayed, or of an older rollout, opens nothing; a cluster that joins in the
// middle neither jumps the gate nor stays empty.
func TestColours(t *testing.T) {
	r := newRig(t)
	hub := r.on(r.hub)
	hub.KubectlWith(coloured("nginx:v1", gated, "member1", "member2"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 6 6 v1", "get", "as", "shop", columns)
	most := r.witness("shop", 6)
	hub.KubectlWith(coloured("nginx:v2", gated, "member1", "member2"), "apply", "--filename", "-")
	r.shows(r.hub, "WaitingForConfirm 6 6 v1/v2", "get", "as", "shop", columns)
	hub.Kubectl("wait", "--for=condition=AwaitingConfirmation", "as/shop", "--timeout=5m")
	for _, m := range r.members[:2] {
		r.images(m, "nginx:v1 nginx:v1 nginx:v2")
	}
	hub.KubectlWith(coloured("nginx:v2", "maxConcurrentClusters: 3, maxUnavailable: 2", "member1", "member2"), "apply", "--filename", "-")
	hub.KubectlWith(coloured("nginx:v2", gated, "member1", "member2", "member3"), "apply", "--filename", "-")
	r.images(r.members[2], "nginx:v1 nginx:v1 nginx:v2")
	r.shows(r.hub, "WaitingForConfirm 9 9 v1/v2", "get", "as", "shop", columns)
	first := hub.Kubectl("get", "as", "shop", gate)
	hub.KubectlWith(confirmation(first), "create", "--filename", "-")
	r.shows(r.hub, "Running 9 9 v2", "get", "as", "shop", columns)
	if n := most(); n > 2 {
		t.Errorf("%d were unavailable at once", n)
	}
	hub.KubectlWith(coloured("nginx:v1", gated, "member1", "member2", "member3"), "apply", "--filename", "-")
	r.shows(r.hub, "WaitingForConfirm 9 9 v1/v2", "get", "as", "shop", columns)
	if out, err := hub.TryKubectlWith(confirmation(first), "create", "--filename", "-"); err == nil {
		t.Errorf("it was confirmed twice: %s", out)
	}
	second := strings.Fields(hub.Kubectl("get", "as", "shop", gate))
	if old := strings.Fields(first); second[0] == old[0] || second[2] == old[2] {
		t.Errorf("an id or a token is used again: %q, %q", first, second)
	}
	cluster.Never(t, restful, "an older confirmation opens a gate", func(context.Context) error {
		got := hub.Kubectl("get", "as", "shop", "--output=jsonpath={.status.aggrStatus.status}")
		return cluster.When(got != "WaitingForConfirm", got)
	})
	hub.KubectlWith(coloured("nginx:v2", gated, "member1", "member2", "member3"), "apply", "--filename", "-")
	r.shows(r.hub, "Running 9 9 v2", "get", "as", "shop", columns)
	r.remove()
}

// available instances of an AppSet or an AdvDeployment.
const available = `--output=jsonpath={.status.aggrStatus.available}`

// expire lets the progress deadline of an AppSet or an AdvDeployment be over. The manifests have
// a long one, so that nothing fails because the machine is slow, and set it back when they are
// applied next.
func (r *rig) expire(s *site, resource, name string) {
	r.Helper()
	r.on(s).Kubectl("patch", resource, name, "--type=merge", `--patch={"spec":{"progressDeadlineSeconds":1}}`)
}

// bad has pods that no node takes.
func bad(manifest string) string {
	return strings.Replace(manifest, "terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 0, nodeSelector: {nowhere: here}", 1)
}

// selectors of nodes that pods have.
const selectors = "--output=jsonpath={.items[*].spec.nodeSelector}"

// TestHalts: what fails stops within its stage, and one command returns without gates.
func TestHalts(t *testing.T) {
	r := newRig(t)
	hub := r.on(r.hub)
	const strategy = "upgradeType: canary|blue, needWaitingForConfirm: true, maxUnavailable: 1"
	good := coloured("nginx:v1", strategy, "member1", "member2", "member3")
	hub.KubectlWith(good, "apply", "--filename", "-")
	r.shows(r.hub, "Running 9 9 v1", "get", "as", "shop", columns)
	most := r.witness("shop", 9)
	hub.KubectlWith(bad(good), "apply", "--filename", "-")
	r.shows(r.hub, "8", "get", "as", "shop", available)
	r.expire(r.hub, "as", "shop")
	r.shows(r.hub, "Halted 9 8 v1", "get", "as", "shop", columns)
	r.shows(r.hub, "True RolloutHalted", "get", "as", "shop", stalled)
	r.shows(r.members[0], "0", "get", "ad", "shop", `--output=jsonpath={.spec.topology.podSets[?(@.name=="shop-gz01-canary")].maxUnavailable}`)
	for _, m := range r.members[1:] {
		r.shows(m, "", "get", "pods", selectors)
	}
	if got := r.fleetVerb("undo", "shop"); !strings.HasSuffix(strings.TrimSpace(got), "appset.workload.dmall.com/shop goes back to revision 1 (v1)") {
		t.Errorf("undo says\n%s", got)
	}
	r.shows(r.hub, "Running 9 9 v1", "get", "as", "shop", columns)
	if n := most(); n > 1 {
		t.Errorf("%d were unavailable at once", n)
	}
	r.remove()
}

// TestNeverRan: what is asked for in place of an installation that never ran is installed, past no
// gate, and so it is told.
func TestNeverRan(t *testing.T) {
	r := newRig(t)
	hub := r.on(r.hub)
	hub.KubectlWith(bad(coloured("nginx:v1", gated, "member1", "member2")), "apply", "--filename", "-")
	r.shows(r.hub, "Installing 6 0 v1", "get", "as", "shop", columns)
	for _, m := range r.members[:2] {
		r.images(m, "nginx:v1 nginx:v1 nginx:v1")
	}
	r.shows(r.hub, "Ready Ready", "get", "as", "shop", states) // in one that is silent something may have run
	good := coloured("nginx:v2", gated, "member1", "member2")
	told, _ := r.hub.plugin(r.Context(), good, "plan", "--filename", "-", "--namespace", r.ns) // 2: something would change
	if !strings.Contains(told, "without stages and gates") || strings.Contains(told, "confirmation") {
		t.Errorf("it was told\n%s", told)
	}
	hub.KubectlWith(good, "apply", "--filename", "-")
	r.shows(r.hub, "Running 6 6 v2", "get", "as", "shop", columns)
	if got := hub.Kubectl("get", "confirmations", "--output=name"); got != "" {
		t.Errorf("it was confirmed: %s", got)
	}
	r.remove()
}
