package appset

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestHalted: a unit that makes no progress halts the rollout where it is.
func TestHalted(t *testing.T) {
	w := newWorld(t, colours, "one", "two").install()
	w.edit(image("nginx:bad"))
	w.settle().expect("Apply one", "Apply two")
	w.now = w.now.Add(10 * time.Minute)
	w.settle()
	id := w.app.Status.Rollout.ID
	w.says(v1beta1.PhaseHalted, "6/6/0 1", "RolloutHalted: the rollout "+id+" halted: 2 of 2 clusters of stage canary failed, and no more than 0 may: one/web-gz01-canary: "+
		"it made no progress for 10m0s: 0 of 1 instances have the content, and 1 are available. Set the spec back to return, or annotate the AppSet with workload.dmall.com/retry="+id+" to try again")
	if got := w.clusters["one"].Part.Spec.Topology.PodSets[0].MaxUnavailable; got == nil || *got != 0 {
		t.Errorf("its budget is %v", got)
	}
	w.wrote = nil
	annotate(w, v1beta1.AnnotationRetry, id)
	w.settle().expect("Apply one", "Apply two").work().settle().says(v1beta1.PhaseWaitingForConfirm, "6/6/0 1/bad", "")
}

// TestBroken: a podSet that tells of a fault of its own halts the rollout, though its numbers are
// those that it is to have; one whose neighbour does is done.
func TestBroken(t *testing.T) {
	w := newWorld(t, colours, "one", "two").install()
	w.edit(image("nginx:bad"))
	w.settle().expect("Apply one", "Apply two").work()
	part := w.clusters["two"].Part
	s := &part.Status.AggrStatus.PodSets[0]
	s.Reason, s.Message, s.Observed = "HookFailed", "a hook failed", false
	part.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "HookFailed", Message: "web: a hook failed"}}
	w.settle()
	if r := w.app.Status.Rollout; r.State != "Halted" || !strings.Contains(r.Message, "1 of 2 clusters of stage canary failed, and no more than 0 may: two/web-gz01-canary: web: a hook failed") {
		t.Errorf("%+v", r)
	}
	w.work().clusters["two"].Part.Status.AggrStatus.PodSets[1].Reason = "HookFailed"
	if w.settle(); w.app.Status.Rollout.State != "Waiting" {
		t.Errorf("%+v", w.app.Status.Rollout)
	}
}

// TestHaltRests: a halted rollout without a budget for all clusters rests, also where a cluster has
// podSets of it that are done beside those that failed: each write to the part has all of them wait
// for its worker.
func TestHaltRests(t *testing.T) {
	w := newWorld(t, colours, "one", "two")
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{UpgradeType: "canary|blue", MaxConcurrentClusters: new(intstr.FromInt32(2))}
	})
	w.install()
	w.edit(image("nginx:2"))
	w.settle().work().settle().runs("one", "canary=2 blue=2").expect("Apply one", "Apply two", "Apply one", "Apply two")
	works := func() {
		w.workIn("two")
		w.workIn("one")
		blue := &w.clusters["one"].Part.Status.AggrStatus.PodSets[1]
		blue.Available, blue.Reason, blue.Message = 0, "HookFailed", "a hook failed"
	}
	for range 4 {
		works()
		w.settle()
	}
	if state := w.app.Status.Rollout.State; state != "Halted" {
		t.Fatal(state)
	}
	w.wrote = nil
	for range 3 {
		works()
		w.settle().expect()
	}
	w.edit(image("nginx:3")) // all go on
	for range 4 {
		w.settle().work()
	}
	w.settle().says(v1beta1.PhaseRunning, "6/6/0 3", "")
	for _, cluster := range w.clusters {
		for _, p := range cluster.Part.Spec.Topology.PodSets {
			if p.MaxUnavailable != nil {
				t.Errorf("%s is still held at %d", p.Name, *p.MaxUnavailable)
			}
		}
	}
}

// TestHaltedAtLength: a part that says at length what it cannot go on for halts the rollout, and
// the status that tells of it can be stored.
func TestHaltedAtLength(t *testing.T) {
	w := newWorld(t, colours, "one", "two").install()
	w.edit(image("nginx:bad"))
	w.settle().work()
	for _, name := range []string{"one", "two"} {
		w.clusters[name].Part.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "HookFailed", Message: strings.Repeat("a hook failed; ", 2000)}}
		w.clusters[name].Part.Status.AggrStatus.PodSets[0].Available = 0
	}
	w.settle()
	r := w.app.Status.Rollout
	if r.State != "Halted" || len(r.Message) > 1024 || !strings.Contains(r.Message, "a hook failed; ") {
		t.Errorf("%s: %d bytes: %s", r.State, len(r.Message), r.Message)
	}
	if stalled := w.condition(v1beta1.ConditionStalled).Message; !strings.Contains(stalled, "to try again") {
		t.Errorf("it does not say what to do: %s", stalled)
	}
}
