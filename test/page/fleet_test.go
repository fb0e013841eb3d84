//go:build cluster

package page

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/audit"
)

// store is an AppSet of both clusters with a gate after its canary.
func (r *fleetRig) store(version string) string {
	return fmt.Sprintf(`apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: store, namespace: %s}
spec:
  updateStrategy: {upgradeType: canary|blue|green, needWaitingForConfirm: true, maxUnavailable: 2}
  podSpec:
    deployType: InPlaceSet
    template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: store, image: store}]}}
  clusterTopology:
    clusters:
    - {name: %s, podSets: [{name: store-gz01-canary, replicas: 1, version: %[3]s}, {name: store-gz01-blue, replicas: 4, version: %[3]s}, {name: store-gz01-green, replicas: 4, version: %[3]s}]}
    - {name: %s, podSets: [{name: store-rz01-blue, replicas: 3, version: %[3]s}, {name: store-rz01-green, replicas: 3, version: %[3]s}]}
`, r.NS, hubName, version, memberName)
}

func (r *fleetRig) ready() {
	r.Helper()
	r.Kubectl("wait", "as", "store", "--for=condition=Ready", "--timeout="+patience.String())
}

// TestFleet: a rollout in a hub and a member as the page shows it. What a pasted manifest would
// do, the gate that it waits at, the member cut off in the meantime, and the confirmation, which
// is made as the user after the plan was shown.
func TestFleet(t *testing.T) {
	r := newFleet(t)
	r.KubectlWith(r.store("v1"), "apply", "--filename", "-")
	r.ready()
	see := rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"", "apps", "apps.tkestack.io", "appcontroller.k8s.io", v1beta1.GroupName},
		Resources: []string{"tapps", "apps", "appsets", "appsets/instances", "confirmations", "pods", "controllerrevisions", "events"}}
	b := open(t, desk, r.api())
	b.enter("#token", r.token("ann", see))
	b.shows("h1", "Nothing needs you")
	b.expect("401") // without the token
	b.expect("403") // there are no Apps, of whose namespaces she may list some
	at := strings.Split(b.location(), "#")[0]
	set := "#/appsets/" + r.NS + "/store"

	// Clusters by groups, and the instances in the member, which is asked for them.
	b.visit(at + set)
	for _, unit := range []string{hubName + "/store-gz01-green", memberName + "/store-rz01-blue"} {
		b.until(unit+" is there", fmt.Sprintf(`document.querySelector('[data-unit=%q]')`, unit))
	}
	if got, want := b.text(".matrix thead"), "Cluster State Available canary blue green"; !strings.EqualFold(strings.Join(strings.Fields(got), " "), want) {
		t.Errorf("the columns are %q, want %q", got, want)
	}
	b.do(click(`[data-unit="` + memberName + `/store-rz01-blue"]`))
	b.until("the three instances are there", "document.querySelectorAll('#unit tbody tr').length === 3")
	for name, pod := range r.member.Pods() {
		if strings.HasPrefix(name, "store-rz01-blue") {
			b.shows("#unit tbody tr", name)
			b.shows("#unit tbody tr", pod.Spec.NodeName)
		}
	}

	b.visit(at + "#/preview")
	b.paste("#manifest", r.store("v2"))
	b.button("form.preview", "Preview")
	b.shows(".plan", "stage canary ("+hubName+"): 1 instance is updated in place: image of store from store:v1 to store:v2; then it waits for a confirmation")
	b.shows(".plan", "stage blue ("+hubName+", "+memberName+"; 1 at a time): 7 instances are updated in place")
	b.shoot(pictures + "/preview-light.png")
	if got := r.Kubectl("get", "as", "store", "--output=jsonpath={.metadata.generation} {.spec.clusterTopology.clusters[0].podSets[0].version}"); got != "1 v1" {
		t.Errorf("after the preview the AppSet is at %s", got)
	}

	// The rollout waits, and the member does not answer.
	r.KubectlWith(r.store("v2"), "apply", "--filename", "-")
	b.visit(at + "#/")
	b.shows(".need", "Waits for you")
	b.shows(".need code", "kubectl tapp fleet confirm store -n "+r.NS)
	if n := eval[int](b, "[...document.querySelectorAll('main button')].filter((e) => e.innerText.includes('Confirm')).length"); n != 0 {
		t.Error("a page that only reads has a button to confirm")
	}
	back := r.cut()
	b.shows(".need", "Silent")
	b.until("it says since when", "[...document.querySelectorAll('.need')].some((e) => e.innerText.includes("+quote(memberName)+") && /for [0-9]+s/.test(e.innerText))")
	b.shoot(pictures + "/silent-light.png")
	b.visit(at + set)
	b.until("its row says as of when", "[...document.querySelectorAll('.matrix tbody tr')].some((e) => e.innerText.includes("+quote(memberName)+") && /as of [0-9]+s ago/.test(e.innerText))")
	b.shoot(pictures + "/fleet-light.png")
	b.visit(at + "#/clusters/" + memberName)
	b.shows("main [role=status]", "may not be current")
	b.shows("tbody tr", "6 of 6")
	back()
	b.visit(at + set)
	b.until("the member is back", "[...document.querySelectorAll('.matrix tbody tr')].some((e) => e.innerText.includes("+quote(memberName)+") && e.innerText.includes('Ready'))")

	// jane confirms, in a dashboard of her own.
	confirm := rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{v1beta1.GroupName}, Resources: []string{"confirmations"}}
	log := r.FollowAudit()
	d := open(t, desk, r.dashboard(r.kubeconfig("jane", see, confirm), "-n", r.NS))
	for _, stage := range []string{"canary", "blue"} {
		d.shows(".need", ", stage "+stage+", token")
		d.button(".need", "Confirm…")
		d.shows("dialog", "kubectl tapp fleet confirm -n "+r.NS+" store --stage "+stage)
		d.until("the plan is shown", "document.querySelector('dialog button.primary')?.disabled === false")
		d.shoot(pictures + "/confirm-light.png")
		if got := r.confirmations(); strings.Contains(got, stage) {
			t.Fatalf("the plan has confirmed: %s", got)
		}
		d.do(click("dialog button.primary"))
		d.shows("dialog", "confirms stage "+stage)
		if got := r.confirmations(); !strings.Contains(got, stage) {
			t.Errorf("the Confirmations are of %q, want one of %s", got, stage)
		}
		d.key("Escape")
	}
	made := r.Requests(log, audit.Filter{Verbs: []string{"create"}, Resource: "confirmations", Namespace: r.NS})
	if len(made) < 2 {
		t.Errorf("two Confirmations were made by %v", made)
	}
	for _, q := range made {
		if q.User != "system:serviceaccount:"+r.NS+":jane" {
			t.Errorf("%s asked for a Confirmation: %s", q.User, q)
		}
	}
	r.ready()
	b.until("all have the new version", "[...document.querySelectorAll('.matrix tbody .unit')].every((e) => e.innerText.includes('v2') && !e.innerText.includes('v1'))")
	for _, tab := range []*tab{b, d} {
		tab.expect("403")
	}
}

// confirmations that there are, by their stages.
func (r *fleetRig) confirmations() string {
	r.Helper()
	return r.Kubectl("get", "confirmations", "--output=jsonpath={range .items[*]}{.spec.stage} {end}")
}

func quote(text string) string { return "'" + text + "'" }
