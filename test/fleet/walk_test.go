//go:build cluster

package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// walked is an AppSet with a canary, a blue and a green podSet in each of two members.
func walked(image, strategy string) string {
	out := fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: walk}
spec:
  updateStrategy: {%s}
  podSpec: {deployType: InPlaceSet, template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: walk, image: '%s'}]}}}
  clusterTopology:
    clusters:`, strategy, image)
	for _, c := range []string{"member1", "member2"} {
		out += fmt.Sprintf("\n    - {name: %s, podSets: [{name: walk-gz01-canary, replicas: 1}, {name: walk-gz01-blue, replicas: 2}, {name: walk-gz01-green, replicas: 2}]}", c)
	}
	return out
}

// TestWalk: who edits an AppSet is told what will happen, and it happens: canary, blue and
// green, with a gate between them that somebody else opens, within one budget. Gates cannot
// be lowered on the way; what confirmed one rollout confirms no other, of the same content
// neither; and a return needs no gates.
func TestWalk(t *testing.T) {
	r := newGuarded(t)
	hub := r.on(r.hub)
	const gates = "upgradeType: canary|blue|green, needWaitingForConfirm: true, maxConcurrentClusters: 2, maxUnavailable: 2"
	hub.Kubectl("create", "role", "edit", "--verb=get,list,watch,patch", "--resource=appsets.workload.dmall.com")
	hub.Kubectl("create", "rolebinding", "edit", "--role=edit", "--user=dev")
	hub.Kubectl("create", "rolebinding", "confirm", "--clusterrole=tapp-confirmer", "--user=ann")
	verb := func(args ...string) string {
		t.Helper()
		out, err := r.hub.plugin(t.Context(), "", append(args, "--namespace", r.ns)...)
		if err != nil {
			out += "(" + err.Error()[strings.LastIndex(err.Error(), "exit"):] + ")"
		}
		return strings.TrimSpace(out)
	}
	plan := func(manifest string) string {
		t.Helper()
		out, err := r.hub.plugin(t.Context(), manifest, "plan", "--filename", "-", "--namespace", r.ns)
		if err != nil {
			out += "(" + err.Error()[strings.LastIndex(err.Error(), "exit"):] + ")"
		}
		return strings.TrimSpace(out)
	}
	says := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("it says\n%s\nwant\n%s", got, want)
		}
	}
	try := func(user, manifest string, args ...string) string {
		out, _ := hub.TryKubectlWith(manifest, append(args, "--as="+user, "--filename", "-")...)
		return strings.TrimSpace(out)
	}
	images := func(canary, blue, green string) {
		t.Helper()
		for _, m := range r.members {
			r.images(m, strings.Join([]string{blue, blue, canary, green, green}, " "))
		}
	}
	first, next := walked("nginx:v1", gates), walked("nginx:v2", gates)

	hub.KubectlWith(first, "apply", "--filename", "-")
	r.shows(r.hub, "Running 10 10 v1", "get", "as", "walk", columns)
	says(plan(first), "appset.workload.dmall.com/walk: nothing would change")
	const order = `stage canary (member1, member2; 2 at a time): 2 instances are updated in place: image of walk from nginx:v1 to nginx:v2; then it waits for a confirmation
stage blue (member1, member2; 2 at a time): 4 instances are updated in place: image of walk from nginx:v1 to nginx:v2; then it waits for a confirmation
stage green (member1, member2; 2 at a time): 4 instances are updated in place: image of walk from nginx:v1 to nginx:v2
at most 2 of all instances are unavailable at once, in all clusters together`
	told := plan(next)
	if !strings.HasSuffix(told, "(exit status 2)") || !strings.Contains(told, "appset.workload.dmall.com/walk would change, in this order:") {
		t.Errorf("plan says\n%s", told)
	}
	for i, line := range strings.Split(order, "\n") {
		if i < 3 {
			line = fmt.Sprintf("  %d. %s\n", i+1, line)
		}
		if !strings.Contains(told, line) {
			t.Errorf("plan lacks %q:\n%s", line, told)
		}
	}
	uids := r.instances("walk")
	most := r.witness("walk", 10)
	says(try("dev", next, "apply"), "Warning: "+strings.ReplaceAll(order, "\n", "\nWarning: ")+"\nappset.workload.dmall.com/walk configured")
	r.shows(r.hub, "WaitingForConfirm 10 10 v1/v2", "get", "as", "walk", columns)
	images("nginx:v2", "nginx:v1", "nginx:v1")
	abandoned := hub.Kubectl("get", "as", "walk", gate)

	says(verb("confirm", "walk", "--as=dev"), fmt.Sprintf("error: confirmations.workload.dmall.com is forbidden: User %q cannot create resource \"confirmations\" in API group \"workload.dmall.com\" in the namespace %q\n(exit status 1)", "dev", r.ns))
	refused := `The appsets "walk" is invalid: : ValidatingAdmissionPolicy 'tapp-gates' with binding 'tapp-gates' denied request: a rollout is under way, and its gates or stages are changed, which needs the right to create confirmations; wait until it is done, or ask someone who may confirm`
	says(try("dev", walked("nginx:v2", "maxUnavailable: 2"), "apply"), refused)

	// A return needs no gates, and the same content again is another rollout.
	if got := verb("undo", "walk"); !strings.HasSuffix(got, "appset.workload.dmall.com/walk goes back to revision 1 (v1)") {
		t.Errorf("undo says\n%s", got)
	}
	r.shows(r.hub, "Running 10 10 v1", "get", "as", "walk", columns)
	hub.KubectlWith(next, "apply", "--filename", "-")
	r.shows(r.hub, "WaitingForConfirm 10 10 v1/v2", "get", "as", "walk", columns)
	waiting := strings.Fields(hub.Kubectl("get", "as", "walk", gate)) // id, stage, token
	says(try("ann", confirmationOf("walk", abandoned), "create"), fmt.Sprintf("The Confirmation \"walk-%s\" is invalid: spec.rollout: Invalid value: the rollout of AppSet walk is %s; a confirmation of another one opens nothing",
		strings.Fields(abandoned)[2], waiting[0]))
	if got := verb("explain", "walk", "member1/walk-gz01-blue"); !strings.Contains(got, "it waits for stage blue") {
		t.Errorf("explain says\n%s", got)
	}
	says(verb("confirm", "walk", "--stage", "canary", "--as=ann"), fmt.Sprintf("confirmation.workload.dmall.com/walk-%s confirms stage canary of rollout %s, by ann", waiting[2], waiting[0]))
	r.shows(r.hub, "blue", "get", "as", "walk", gateStage)
	images("nginx:v2", "nginx:v2", "nginx:v1")
	says(verb("confirm", "walk", "--stage", "canary", "--as=ann"), "error: stage canary does not wait: stage blue does\n(exit status 1)")
	says(try("ann", confirmationOf("walk", strings.Join(waiting, " ")), "create"), fmt.Sprintf("The Confirmation \"walk-%s\" is invalid: spec.stage: Invalid value: no gate waits after stage canary, which is: Done", waiting[2]))
	verb("confirm", "walk", "--stage", "blue", "--as=ann")
	if got := verb("status", "walk", "--watch", "--timeout", "10m"); !strings.Contains(got, "AppSet \"walk\" successfully rolled out") {
		t.Errorf("status says\n%s", got)
	}
	images("nginx:v2", "nginx:v2", "nginx:v2")
	if now := r.instances("walk"); now != uids {
		t.Errorf("the instances were %s\nand are %s", uids, now)
	}
	if n := most(); n > 2 {
		t.Errorf("%d were unavailable at once", n)
	}
	if got := strings.Fields(verb("history", "walk")); len(got) != 17 || strings.Join(got[5:7], " ") != "2 v2" || strings.Join(got[8:11], " ") != "asked for, stable" || strings.Join(got[12:14], " ") != "1 v1" {
		t.Errorf("history says %q", got)
	}
	hub.Kubectl("delete", "as", "walk", "--timeout=5m")
}

// gateStage is the stage whose gate waits.
const gateStage = `--output=jsonpath={.status.rollout.stages[?(@.token)].name}`

// instances of an application in all members, by their UIDs.
func (r *rig) instances(app string) (out string) {
	r.Helper()
	for _, m := range r.members {
		out += r.on(m).Kubectl("get", "pods", "--selector=app="+app, "--sort-by=.metadata.name", "--output=jsonpath={.items[*].metadata.uid} ")
	}
	return out
}
