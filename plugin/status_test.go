package plugin

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestProgress: what is counted, and what the summary and the frame say of it.
func TestProgress(t *testing.T) {
	stored := webTApp(7, onlyOnce)
	tapp := webTApp(6, withImage("web:2"), onlyOnce, func(t *tappv1.TApp) {
		t.Spec.Statuses = map[string]tappv1.InstanceStatus{"5": tappv1.InstanceKilled}
		t.Status.UpdateRevision = "web-2"
		t.Status.Statuses = map[string]tappv1.InstanceStatus{"4": tappv1.InstanceFailed}
	})
	o := observe(t, tapp,
		podOf(tapp, "default", 0), // done
		podOf(tapp, "default", 1, func(p *corev1.Pod) { p.Annotations[tappv1.AnnotationRestart] = "please" }),
		podOf(stored, "default", 2),         // its update waits for the budget
		podOf(tapp, "default", 3, notReady), //
		podOf(tapp, "default", 5),           // to be deleted
		podOf(stored, "default", 6),         // to be deleted
	)
	p := o.progress()
	if p.desired != 4 || p.done != 1 || p.available != 3 || p.unavailable != 1 || p.surplus != 2 {
		t.Errorf("%+v", p)
	}
	const summary = "web: 1 of 4 instances are done, 3 are available; pods that are to go: 2; " +
		"instances 1-2 (WaitsForBudget): 3 of 4 instances are available, and at least 3 must be; " +
		"instance 3 (NotReady): its pod is not ready; " +
		"instance 5 (Delete): spec.statuses says Killed; instance 6 (Delete): spec.replicas is 6"
	if got := o.summary(); got != summary {
		t.Errorf("it is\n%s\nand should be\n%s", got, summary)
	}
	frames := []string{
		"web  web-2",
		"[##########++++++++++....................]  1 of 4 done, 3 available",
		"pods that are to go: 2",
		"  1-2   WaitsForBudget   3 of 4 instances are available, and at least 3 must be",
		"  3     NotReady         its pod is not ready",
		"  5     Delete           spec.statuses says Killed",
		"  6     Delete           spec.replicas is 6",
	}
	if got := frame(o, false); !slices.Equal(got, frames) {
		t.Errorf("it is\n%s\nand should be\n%s", strings.Join(got, "\n"), strings.Join(frames, "\n"))
	}
}

// TestUnobserved: of a spec that the controller has not seen nothing else is told.
func TestUnobserved(t *testing.T) {
	o := observe(t, webTApp(1, func(t *tappv1.TApp) { t.Generation = 2 }))
	if got, want := o.summary(), "web: the controller has not seen generation 2 yet"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := frame(o, false), []string{"web  <none>", "the controller has not seen generation 2 yet"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if over, err := o.outcome(); over || err != nil {
		t.Errorf("over: %t, %v", over, err)
	}
}

func TestFrameTellsOfProblems(t *testing.T) {
	got := frame(observe(t, webTApp(0, withLostTemplate)), false)
	want := []string{"web  <none>", "[########################################]  0 of 0 done, 0 available",
		`spec.updateStrategy.template: there is no template "lost"; no update starts until spec.templatePool has it, or the field names another one (there are: default, canary)`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOutcome(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "since then", ObservedGeneration: generation}
	}
	for _, c := range []struct {
		name       string
		conditions []metav1.Condition
		pods       func(*tappv1.TApp) []*corev1.Pod
		over       bool
		err        string
	}{
		{"no condition yet", nil, available, false, ""},
		{"ready", []metav1.Condition{condition(tappv1.ConditionReady, "True", "Available", 1)}, available, true, ""},
		{"ready, an older generation", []metav1.Condition{condition(tappv1.ConditionReady, "True", "Available", 0)}, available, false, ""},
		{"ready as stored, and the pod is not", []metav1.Condition{condition(tappv1.ConditionReady, "True", "Available", 1)},
			func(t *tappv1.TApp) []*corev1.Pod { return []*corev1.Pod{podOf(t, "default", 0, notReady)} }, false, ""},
		{"not ready as stored, and the pod is", []metav1.Condition{condition(tappv1.ConditionReady, "False", "NotAvailable", 1)}, available, false, ""},
		{"stalled", []metav1.Condition{condition(tappv1.ConditionStalled, "True", "TemplateMissing", 1)}, available, false,
			"the rollout of web is stalled (TemplateMissing): since then"},
		{"a node is lost, and the others go on", []metav1.Condition{condition(tappv1.ConditionStalled, "True", "NodeLost", 1), condition(tappv1.ConditionProgressing, "True", "Progressing", 1)}, available, false, ""},
		{"a node is lost, and nothing moves", []metav1.Condition{condition(tappv1.ConditionStalled, "True", "NodeLost", 1), condition(tappv1.ConditionProgressing, "False", "ProgressDeadlineExceeded", 1)}, available, false,
			"the rollout of web is stalled (NodeLost): since then"},
		{"stalled, an older generation", []metav1.Condition{condition(tappv1.ConditionStalled, "True", "TemplateMissing", 0)}, available, false, ""},
		{"failed", []metav1.Condition{condition(tappv1.ConditionReady, "False", "InstancesFailed", 1)}, available, false,
			"the rollout of web is over: since then"},
	} {
		tapp := webTApp(1, func(t *tappv1.TApp) { t.Status.Conditions = c.conditions })
		over, err := observe(t, tapp, c.pods(tapp)...).outcome()
		if over != c.over || text(err) != c.err {
			t.Errorf("%s: over %t, %v", c.name, over, err)
		}
	}
}

// TestRefusedUpdateIsTold: an update that is refused is told of the instance that the
// condition names, and of those whose next action is like it. It needs no right to write.
func TestRefusedUpdateIsTold(t *testing.T) {
	tapp := webTApp(3, func(t *tappv1.TApp) {
		t.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionReplicaFailure, Status: metav1.ConditionTrue, Reason: "FailedUpdate",
			Message: "cannot drain instance 1 since 2026-03-01T12:00:00Z: pods \"web-<id>\" is forbidden: no", ObservedGeneration: 1}}
		t.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(2))
	})
	was := tapp.DeepCopy()
	was.Spec.Template.Spec.Containers[0].Image = "web:0"
	o := observe(t, tapp, podOf(was, "default", 0), podOf(was, "default", 1), podOf(tapp, "default", 2))
	const told = "FailedUpdate: cannot drain instance 1 since 2026-03-01T12:00:00Z: pods \"web-<id>\" is forbidden: no"
	if v, err := newPreview(o, tapp); err != nil || v.Refused != told {
		t.Errorf("plan shows %q, %v", v.Refused, err)
	}
	for id, want := range map[int]string{0: told, 1: told, 2: ""} {
		if x := o.explain(o.Instance(id)); strings.Join(x.Problems, "; ") != want {
			t.Errorf("instance %d: %q, want %q", id, x.Problems, want)
		}
	}
	if x := o.explain(o.Instance(1)); x.Reason+": "+x.Why != "FailedUpdate: cannot drain it: pods \"web-<id>\" is forbidden: no" {
		t.Errorf("instance 1 is held by %s: %s", x.Reason, x.Why)
	}
	if o = observe(t, tapp, podOf(tapp, "default", 0), podOf(tapp, "default", 1), podOf(tapp, "default", 2)); o.refused() != "" {
		t.Errorf("of what is done %q is told", o.refused())
	}
}

// TestRefusedIsTold: what the API server does not let the controller create, in all that
// tells of the rollout.
func TestRefusedIsTold(t *testing.T) {
	tapp := webTApp(2, func(t *tappv1.TApp) {
		t.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionReplicaFailure, Status: metav1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota", ObservedGeneration: 1}}
	})
	o := observe(t, tapp, podOf(tapp, "default", 0))
	const told = "FailedCreate: exceeded quota"
	if lines := frame(o, false); !slices.Contains(lines, told) {
		t.Errorf("status shows %q", lines)
	}
	if want := "web: 1 of 2 instances are done, 1 are available; " + told + "; instance 1 (Create): the instance has no pod"; o.summary() != want {
		t.Errorf("status -w shows %q, want %q", o.summary(), want)
	}
	if all, missing := o.explain(o.Instance(0)), o.explain(o.Instance(1)); len(all.Problems) > 0 || !slices.Equal(missing.Problems, []string{told}) {
		t.Errorf("explain shows %q, and %q for what is missing", all.Problems, missing.Problems)
	}
}

func available(t *tappv1.TApp) []*corev1.Pod { return []*corev1.Pod{podOf(t, "default", 0)} }

// TestRestartable: which pods `restart` asks for another one of.
func TestRestartable(t *testing.T) {
	tapp := webTApp(6, func(t *tappv1.TApp) {
		t.Spec.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceKilled}
	})
	now := metav1.Now()
	o := observe(t, tapp, podOf(tapp, "default", 0),
		podOf(tapp, "default", 2, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" }),
		podOf(tapp, "default", 3, func(p *corev1.Pod) { p.DeletionTimestamp = &now }),
		podOf(tapp, "default", 4, failed),
		podOf(tapp, "default", 5, notReady))
	for id, want := range []string{
		"",
		"instance 1 has no pod to restart: it is Killed",
		"instance 2 has no pod to restart: it is NotCreated",
		"instance 3 has no pod to restart: its pod is being deleted already",
		"instance 4 has no pod to restart: it ended (Failed)",
		"",
		"instance 6 has no pod to restart: it is NotCreated",
	} {
		pod, err := o.restartable(id)
		if text(err) != want || (pod == nil) != (want != "") {
			t.Errorf("%d: %v, %v", id, pod, err)
		}
	}
}

// TestMissingAvailable: what --wait waits for.
func TestMissingAvailable(t *testing.T) {
	tapp := webTApp(4, onlyOnce, func(t *tappv1.TApp) {
		t.Status.Statuses = map[string]tappv1.InstanceStatus{"3": tappv1.InstanceSucc}
	})
	o := observe(t, tapp, podOf(tapp, "default", 0), podOf(tapp, "default", 1, notReady))
	for id, want := range [][2]string{
		{"", ""},
		{"its pod is not ready", ""},
		{"the instance has no pod", ""},
		{"", "instance 3 ended (Succ) and stays as it ended; kill it and start it to run it again"},
		{"", "instance 4 is no more"},
	} {
		why, err := missingAvailable(o, id)
		if why != want[0] || text(err) != want[1] {
			t.Errorf("%d: %q, %v", id, why, err)
		}
	}
}
