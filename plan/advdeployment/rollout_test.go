package advdeployment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/rollout"
)

// coloured is a lone AdvDeployment with a canary of one instance and a blue podSet of three.
func coloured(image, strategy string) string {
	return fmt.Sprintf(`{podSpec: {deployType: InPlaceSet, template: {spec: {containers: [{name: a, image: '%s', resources: {}}]}}}, updateStrategy: {%s},
		topology: {podSets: [{name: a-gz01-canary, replicas: 1}, {name: a-gz01-blue, replicas: 3}]}}`, image, strategy)
}

const gated = "upgradeType: canary|blue, needWaitingForConfirm: true"

var canary, blue = Child{TApp, "a-gz01-canary"}, Child{TApp, "a-gz01-blue"}

// image that the instances of a child have or get.
func (w *world) image(child Child) string {
	w.Helper()
	if w.children[child].GetAnnotations()[v1beta1.AnnotationFrom] != "" && w.field(child, "spec", "templates") != "null" {
		return strings.Trim(w.field(child, "spec", "templatePool", templateNext, "spec", "containers"), `[]{}`)
	}
	return strings.Trim(w.field(child, "spec", "template", "spec", "containers"), `[]{}`)
}

func (w *world) images(what, canaries, blues string) {
	w.Helper()
	w.expect(what, w.image(canary)+" "+w.image(blue), fmt.Sprintf(`"image":"nginx:%s","name":"a" "image":"nginx:%s","name":"a"`, canaries, blues))
}

// confirm the gate that waits.
func (w *world) confirm() *v1beta1.Confirmation {
	w.Helper()
	r := w.d.Status.Rollout
	for _, stage := range r.Stages {
		if stage.Token != "" {
			c := &v1beta1.Confirmation{}
			c.Spec = v1beta1.ConfirmationSpec{AppSet: "a", Rollout: r.ID, Stage: stage.Name, Token: stage.Token, ConfirmedBy: "ann"}
			w.confirmations = append(w.confirmations, c)
			return c
		}
	}
	w.Fatalf("no gate waits: %+v", r)
	return nil
}

// TestLone: an AdvDeployment that no AppSet made goes through stages and gates, as an AppSet
// does: a confirmation opens one gate, and the way back has none.
func TestLone(t *testing.T) {
	w := newWorld(t, coloured("nginx:v1", gated))
	w.run()
	w.expect("installed without gates", w.d.Status.AggrStatus.Status, v1beta1.PhaseRunning)
	w.images("installed", "v1", "v1")

	w.spec(coloured("nginx:v2", gated))
	w.run()
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseWaitingForConfirm)
	w.images("canary first", "v2", "v1")
	w.expect("it is on its way", w.condition(v1beta1.ConditionReconciling), "True Progressing: stage canary is done, and the next one waits for a Confirmation")
	w.expect("versions", w.d.Status.AggrStatus.Version, "v1/v2")
	w.expect("observed", w.d.Status.ObservedGeneration, w.d.Generation)
	w.expect("who waits", w.d.Status.AggrStatus.PodSets[1].Message, "it waits for stage blue")

	w.spec(strings.Replace(coloured("nginx:v2", gated), "replicas: 3", "replicas: 4", 1))
	w.run()
	w.images("scaled", "v2", "v1")
	w.expect("scaling waits for no gate", w.field(blue, "spec", "replicas"), "4")
	w.spec(coloured("nginx:v2", "")) // gates cannot be talked away
	w.run()
	w.images("no gate in the spec any more", "v2", "v1")

	old := w.confirm()
	w.run()
	w.images("confirmed", "v2", "v2")
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseRunning)
	w.expect("ready", w.condition(v1beta1.ConditionReady), "True Synced: "+Synced)
	w.expect("again", w.step(), []string(nil))

	w.spec(coloured("nginx:v1", gated))
	w.run()
	w.images("a new rollout has a gate of its own", "v1", "v2")
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseWaitingForConfirm)
	w.expect("the confirmation of the last one is there", w.confirmations[0], old)
	w.spec(coloured("nginx:v2", gated))
	w.run()
	w.images("the way back needs none", "v2", "v2")
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseRunning)
}

// TestLoneBudget: one budget for all podSets, reserved before it is written.
func TestLoneBudget(t *testing.T) {
	w := newWorld(t, coloured("nginx:v1", "maxUnavailable: 2"))
	w.run()
	w.spec(coloured("nginx:v2", "maxUnavailable: 2"))
	granted := func() int32 {
		sum := int32(0)
		for _, child := range []Child{canary, blue} {
			if _, ceiling := grantOf(w.children[child]); ceiling != nil && w.image(child) == `"image":"nginx:v2","name":"a"` {
				sum += *ceiling
			}
		}
		return sum
	}
	p := w.plan()
	w.expect("it is recorded first", p.Keep != nil, true)
	w.step()
	w.expect("granted", granted(), int32(2))
	w.tell(canary, 1, 0, 0)
	w.tell(blue, 3, 1, 2)
	for range 3 {
		w.step()
		if n := granted(); n > 2 {
			t.Errorf("%d are granted", n)
		}
	}
	w.run()
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseRunning)
	w.images("all", "v2", "v2")
}

// TestLoneHalts: what fails stops in its stage, tells so, and may not take a stable instance.
func TestLoneHalts(t *testing.T) {
	w := newWorld(t, coloured("nginx:v1", "upgradeType: canary|blue"))
	w.run()
	w.spec(coloured("nginx:bad", "upgradeType: canary|blue"))
	w.step()
	w.tell(canary, 1, 1, 0)
	w.step()
	w.tell(canary, 1, 1, 0) // it is as if all had changed at once
	w.step()
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseUpdating)
	w.now = w.now.Add(10 * time.Minute)
	w.step()
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseHalted)
	id := w.d.Status.Rollout.ID
	w.expect("why", w.condition(v1beta1.ConditionStalled), "True RolloutHalted: the rollout "+id+" halted: 1 of 1 clusters of stage canary failed, and no more than 0 may: "+
		"a-gz01-canary: it made no progress for 10m0s: 1 of 1 instances have the content, and 0 are available. "+
		"Set the spec back to return, or annotate the AdvDeployment with workload.dmall.com/retry="+id+" to try again")
	w.expect("held", w.field(canary, "spec", "paused"), "true")
	w.images("blue is untouched", "bad", "v1")
	w.spec(coloured("nginx:v1", "upgradeType: canary|blue"))
	w.run()
	w.images("back", "v1", "v1")
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseRunning)
}

// TestPartsAreNotLone: what an AppSet made is as the AppSet says, at once.
func TestPartsAreNotLone(t *testing.T) {
	w := newWorld(t, coloured("nginx:v1", gated))
	w.d.Labels = map[string]string{v1beta1.LabelAppSetUID: "u"}
	w.run()
	w.spec(coloured("nginx:v2", gated))
	w.run()
	w.images("at once", "v2", "v2")
	w.expect("nothing is recorded", len(w.revisions), 0)
	w.expect("nothing is told", w.d.Status.Rollout == nil, true)
}

// TestLoneUnknown: where the record is lost, what is asked for is taken for stable.
func TestLoneUnknown(t *testing.T) {
	w := newWorld(t, coloured("nginx:v1", gated))
	w.run()
	w.revisions = nil
	w.run()
	w.expect("state", w.d.Status.Rollout.State, string(rollout.Done))
	w.spec(coloured("nginx:v2", gated))
	w.run()
	w.images("known again", "v2", "v1")
}
