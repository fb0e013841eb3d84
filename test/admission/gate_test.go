//go:build cluster

package admission

import (
	"fmt"
	"strings"
	"testing"
)

// gated is an AppSet, or an AdvDeployment, with gates.
func gated(kind, image, strategy string) string {
	placed := "clusterTopology: {clusters: [{name: member1, podSets: [{name: web-gz01-canary, replicas: 1}, {name: web-gz01-blue, replicas: 2}]}]}"
	if kind == "AdvDeployment" {
		placed = "topology: {podSets: [{name: web-gz01-canary, replicas: 1}, {name: web-gz01-blue, replicas: 2}]}"
	}
	return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: %s
metadata: {name: web}
spec:
  updateStrategy: {%s}
  podSpec: {deployType: InPlaceSet, template: {spec: {containers: [{name: web, image: '%s'}]}}}
  %s`, kind, strategy, image, placed)
}

const staged = "upgradeType: canary|blue, needWaitingForConfirm: true"

// waits has the rollout of an AppSet or AdvDeployment be in a state, as its controller
// would write it, with the gate after the canary.
func (r *rig) waits(kind, state string) {
	r.Helper()
	r.Kubectl("patch", kind, "web", "--subresource=status", "--type=merge", "--patch", `{"status": {"observedGeneration": 1, "aggrStatus": {"desired": 3, "available": 3, "unAvailable": 0}, "rollout":
		{"id": "0123456789-2", "state": "`+state+`", "stage": "canary", "stages": [{"name": "canary", "state": "Waiting", "token": "abc"}, {"name": "blue", "state": "Pending"}]}}}`)
}

// users of the namespace: dev edits, ann confirms, and eve does both.
func (r *rig) users() {
	r.Helper()
	r.Kubectl("create", "role", "edit", "--verb=get,create,update,patch", "--resource=appsets.workload.dmall.com,advdeployments.workload.dmall.com")
	r.Kubectl("create", "rolebinding", "edit", "--role=edit", "--user=dev", "--user=eve")
	r.Kubectl("create", "rolebinding", "confirm", "--clusterrole=tapp-confirmer", "--user=ann", "--user=eve")
}

// confirmation of a gate of web.
func confirmation(name, rollout, stage, token, more string) string {
	return fmt.Sprintf(`{"apiVersion": "workload.dmall.com/v1beta1", "kind": "Confirmation", "metadata": {"name": %q},
		"spec": {"appSet": "web", "rollout": %q, "stage": %q, "token": %q%s}}`, name, rollout, stage, token, more)
}

// TestConfirmations: who may confirm what, and what kubectl says to all others.
func TestConfirmations(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"AppSet", "AdvDeployment"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.users()
			create := func(user, manifest string) string {
				t.Helper()
				out, _ := r.TryKubectlWith(manifest, "create", "--as="+user, "--filename", "-")
				return strings.ReplaceAll(tidy(out), r.NS, "NAMESPACE")
			}
			good := confirmation("web-abc", "0123456789-2", "canary", "abc", "")
			if got, want := create("ann", good), `The Confirmation "web-abc" is invalid: spec.appSet: Invalid value: there is no AppSet web in this namespace, and no AdvDeployment web that has a rollout of its own`; got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			r.KubectlWith(gated(kind, "web:1", staged), "create", "--filename", "-")
			if got, want := create("ann", good), `The Confirmation "web-abc" is invalid: spec.rollout: Invalid value: `+kind+` web has no rollout`; got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			r.waits(kind, "Waiting")
			for name, c := range map[string]struct{ user, manifest, want string }{
				"of an older rollout": {"ann", confirmation("web-abc", "0123456789-1", "canary", "abc", ""),
					`The Confirmation "web-abc" is invalid: spec.rollout: Invalid value: the rollout of ` + kind + ` web is 0123456789-2; a confirmation of another one opens nothing`},
				"of a stage that is not done": {"ann", confirmation("web-abc", "0123456789-2", "blue", "abc", ""),
					`The Confirmation "web-abc" is invalid: spec.stage: Invalid value: no gate waits after stage blue, which is: Pending`},
				"of no stage": {"ann", confirmation("web-abc", "0123456789-2", "red", "abc", ""),
					`The Confirmation "web-abc" is invalid: spec.stage: Invalid value: rollout 0123456789-2 has no stage red that waits`},
				"of another gate": {"ann", confirmation("web-abd", "0123456789-2", "canary", "abd", ""),
					`The Confirmation "web-abd" is invalid: spec.token: Invalid value: the gate after stage canary has another token: see status.rollout.stages[canary].token`},
				"of another name": {"ann", confirmation("web", "0123456789-2", "canary", "abc", ""),
					`The Confirmation "web" is invalid: <nil>: Invalid value: the name must be that of the AppSet, a hyphen and the token, so that a gate is confirmed once`},
				"by who may only edit": {"dev", good,
					`Error from server (Forbidden): error when creating "STDIN": confirmations.workload.dmall.com is forbidden: User "dev" cannot create resource "confirmations" in API group "workload.dmall.com" in the namespace "NAMESPACE"`},
			} {
				if got := create(c.user, c.manifest); !isAlike(got, c.want) {
					t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
				}
			}

			// Who confirms is written by admission, whatever the manifest says.
			if got, want := create("ann", confirmation("web-abc", "0123456789-2", "canary", "abc", `, "confirmedBy": "bob", "comment": "looks well"`)), "confirmation.workload.dmall.com/web-abc created"; got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			if got, want := r.Kubectl("get", "confirmation", "web-abc", "--output=jsonpath={.spec.confirmedBy} {.metadata.ownerReferences[*].kind}"), "ann "+kind; got != want {
				t.Errorf("it has %s, want %s", got, want)
			}
			if got, want := create("eve", good), `Error from server (AlreadyExists): error when creating "STDIN": confirmations.workload.dmall.com "web-abc" already exists`; got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			out, err := r.TryKubectl("patch", "confirmation", "web-abc", "--type=merge", "--patch", `{"spec": {"confirmedBy": "bob"}}`)
			if want := `The Confirmation "web-abc" is invalid: spec: Invalid value: a confirmation is immutable`; err == nil || !isAlike(tidy(out), want) {
				t.Errorf("%s\nwant\n%s", out, want)
			}
			out, err = r.TryKubectl("patch", kind, "web", "--as=ann", "--type=merge", "--patch", `{"spec": {"minReadySeconds": 1}}`)
			if err == nil || !strings.Contains(out, `User "ann" cannot patch resource`) {
				t.Errorf("who confirms may edit: %s", out)
			}
		})
	}
}

// TestConfirmedBy: nobody confirms for somebody else, also while no webhook is asked.
func TestConfirmedBy(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{bypassed: ""})
	r.users()
	r.KubectlWith(gated("AppSet", "web:1", staged), "create", "--filename", "-")
	r.waits("AppSet", "Waiting")
	for by, want := range map[string]string{
		"":      refusedBy("web-abc", "tapp-confirmations", "spec.confirmedBy has to be the user who confirms, ann"),
		", bob": refusedBy("web-abc", "tapp-confirmations", "spec.confirmedBy has to be the user who confirms, ann"),
		", ann": "confirmation.workload.dmall.com/web-abc created",
	} {
		if name, given := strings.CutPrefix(by, ", "); given {
			by = `, "confirmedBy": "` + name + `"`
		}
		out, _ := r.TryKubectlWith(confirmation("web-abc", "0123456789-2", "canary", "abc", by), "create", "--as=ann", "--filename", "-")
		if got := tidy(out); !isAlike(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", by, got, want)
		}
	}
}

// refusedBy is what kubectl says where a policy refuses a Confirmation.
func refusedBy(name, policy, why string) string {
	return fmt.Sprintf(`The confirmations "%s" is invalid: : ValidatingAdmissionPolicy '%[2]s' with binding '%[2]s' denied request: %[3]s`, name, policy, why)
}

// TestGatesStay: while a rollout is under way, its gates and stages are changed by those
// only who may confirm. All else may be changed by who may edit.
func TestGatesStay(t *testing.T) {
	t.Parallel()
	const mayNot = "a rollout is under way, and its gates or stages are changed, which needs the right to create confirmations; wait until it is done, or ask someone who may confirm"
	for _, kind := range []string{"AppSet", "AdvDeployment"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.users()
			r.KubectlWith(gated(kind, "web:1", staged), "apply", "--server-side", "--filename", "-")
			apply := func(user, image, strategy string) string {
				t.Helper()
				out, _ := r.TryKubectlWith(gated(kind, image, strategy), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--as="+user, "--filename", "-")
				lines := said(out)
				return lines[len(lines)-1]
			}
			applied := strings.ToLower(kind) + ".workload.dmall.com/web serverside-applied (server dry run)"
			refused := fmt.Sprintf(`The %ss "web" is invalid: : ValidatingAdmissionPolicy 'tapp-gates' with binding 'tapp-gates' denied request: %s`, strings.ToLower(kind), mayNot)
			lower := map[string]string{
				"without gates": "upgradeType: canary|blue", "with other groups": "upgradeType: blue, needWaitingForConfirm: true", "without stages": "needWaitingForConfirm: true",
				"with other stages": "needWaitingForConfirm: true, stages: [{name: all, groups: [canary, blue]}]",
			}
			for _, state := range []string{"Staged", "Halted", "RollingBack", "RolledBack", "Waiting"} {
				r.waits(kind, state)
				if got := apply("dev", "web:1", lower["without gates"]); got != refused {
					t.Errorf("%s: dev is told\n%s\nwant\n%s", state, got, refused)
				}
			}
			for how, strategy := range lower {
				if got := apply("dev", "web:1", strategy); got != refused {
					t.Errorf("%s: dev is told\n%s\nwant\n%s", how, got, refused)
				}
			}
			if got := apply("eve", "web:1", lower["without gates"]); got != applied {
				t.Errorf("eve is told %s", got)
			}
			if got := apply("dev", "web:2", staged+", maxUnavailable: 1, paused: true"); got != applied {
				t.Errorf("dev is told %s", got)
			}
			r.waits(kind, "Done")
			if got := apply("dev", "web:1", lower["without gates"]); got != applied {
				t.Errorf("Done: dev is told %s", got)
			}
		})
	}
}

// TestOrphan: a deletion that is to leave what the AppSet owns would delete the parts in their
// clusters. It is refused, with what leaves them.
func TestOrphan(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.KubectlWith(gated("AppSet", "web:1", staged), "apply", "--server-side", "--filename", "-")
	remove := func(flags ...string) string {
		t.Helper()
		out, _ := r.TryKubectlWith("", append([]string{"delete", "appset", "web", "--dry-run=server"}, flags...)...)
		lines := said(out)
		return lines[len(lines)-1]
	}
	const goes = `appset.workload.dmall.com "web" deleted`
	expect := func(what, got string, refused bool) {
		t.Helper()
		want := goes
		if refused {
			want = fmt.Sprintf(`The appsets "web" is invalid: : ValidatingAdmissionPolicy 'tapp-orphans' with binding 'tapp-orphans' denied request: it would delete the parts in their clusters, `+
				`with all that they run: --cascade=orphan is about objects of this cluster alone. To leave them: kubectl patch appset web --namespace %s --type=merge --patch '{"spec": {"deletionPolicy": "Orphan"}}', and delete it then`, r.NS)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: it says\n%s\nwant\n%s", what, got, want)
		}
	}
	expect("without a part", remove("--cascade=orphan"), false)
	r.Kubectl("patch", "appset", "web", "--type=merge", "--patch", `{"metadata": {"finalizers": ["workload.dmall.com/fleet"]}}`)
	expect("orphans", remove("--cascade=orphan"), true)
	expect("in the background", remove(), false)
	expect("in the foreground", remove("--cascade=foreground"), false)
	r.Kubectl("patch", "appset", "web", "--type=merge", "--patch", `{"spec": {"deletionPolicy": "Orphan"}}`)
	expect("as the message says", remove("--cascade=orphan"), false)
	r.Kubectl("patch", "appset", "web", "--type=merge", "--patch", `{"metadata": {"finalizers": null}}`)
}

// TestOrphanedRelease: a deletion that is to leave what an AdvDeployment owns would uninstall its
// releases. It is refused, with what leaves them.
func TestOrphanedRelease(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.KubectlWith(gated("AdvDeployment", "web:1", staged), "apply", "--server-side", "--filename", "-")
	patch := func(flags ...string) {
		r.Kubectl(append([]string{"patch", "advdeployment", "web", "--type=merge"}, flags...)...)
	}
	patch("--patch", `{"metadata": {"finalizers": ["workload.dmall.com/fleet"]}}`)
	owns := func(what string) {
		patch("--subresource=status", "--patch", `{"status": {"aggrStatus": {"desired": 3, "available": 3, "unAvailable": 0, "ownerResource": ["Service/web", "`+what+`"]}}}`)
	}
	const goes = `advdeployment.workload.dmall.com "web" deleted`
	refused := fmt.Sprintf(`The advdeployments "web" is invalid: : ValidatingAdmissionPolicy 'tapp-releases' with binding 'tapp-releases' denied request: it would uninstall its Helm releases, `+
		`with all that they run: --cascade=orphan is about objects that it owns, and it owns no release. To leave them: kubectl annotate advdeployment web --namespace %s workload.dmall.com/keep-releases=true, and delete it then`, r.NS)
	expect := func(what, cascade, want string) {
		t.Helper()
		out, _ := r.TryKubectlWith("", "delete", "advdeployment", "web", "--dry-run=server", "--cascade="+cascade)
		lines := said(out)
		if got := lines[len(lines)-1]; !strings.HasPrefix(got, want) {
			t.Errorf("%s: it says\n%s\nwant\n%s", what, got, want)
		}
	}
	owns("TApp/web")
	expect("without a release", "orphan", goes)
	owns("Release/web")
	expect("orphans", "orphan", refused)
	expect("in the background", "background", goes)
	expect("in the foreground", "foreground", goes)
	r.Kubectl("annotate", "advdeployment", "web", "workload.dmall.com/keep-releases=true")
	expect("as the message says", "orphan", goes)
	patch("--patch", `{"metadata": {"finalizers": null}}`)
}
