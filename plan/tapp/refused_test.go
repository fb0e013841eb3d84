package tapp

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/refusal"
)

// refusing is a rolling update of three instances from web:1 to web:2.
func refusing(t *testing.T, change ...func(*scenario)) Input {
	t.Helper()
	s := story(3, podStory{IDs: "0-2", From: "v1"})
	s.Versions = map[string]json.RawMessage{
		"v1": json.RawMessage(`{"spec":{"containers":[{"name":"app","image":"web:1"}]}}`),
		"e1": json.RawMessage(`{"spec":{"containers":[{"name":"app","image":"web:2","env":[{"name":"A","value":"1"}]}]}}`),
	}
	for _, c := range change {
		c(s)
	}
	return s.input(t)
}

func refusedOf(p Plan) string {
	c := meta.FindStatusCondition(p.Status.Conditions, tappv1.ConditionReplicaFailure)
	if c == nil {
		return "none"
	}
	return strings.TrimSuffix(string(c.Status)+" "+c.Reason+": "+c.Message, ": ")
}

// TestRefusalEnds: a refusal is told while its operation is wanted: now, or when its turn
// has come. It is told again by who knows only the stored condition.
func TestRefusalEnds(t *testing.T) {
	pods := func(pods ...podStory) func(*scenario) { return func(s *scenario) { s.Pods = pods } }
	for name, c := range map[string]struct {
		op     string
		id     int
		change func(*scenario)
		wanted bool
	}{
		"a drain": {"Drain", 0, pods(podStory{IDs: "0-2", From: "v1"}), true},
		"of an instance that waits for the budget": {"Drain", 2, pods(podStory{IDs: "0-2", From: "v1"}), true},
		"of one that has what it is to have":       {"Drain", 0, pods(podStory{IDs: "0-2"}), false},
		"while paused":                             {"Drain", 0, func(s *scenario) { s.TApp.Spec.Paused = true }, false},
		"a patch of a drained pod":                 {"UpdateInPlace", 0, pods(podStory{IDs: "0", From: "v1", Gate: "closed 1m", Ready: "not 1m"}, podStory{IDs: "1-2", From: "v1"}), true},
		"a patch, and the gate has opened again":   {"UpdateInPlace", 0, pods(podStory{IDs: "0-2", From: "v1"}), true},
		"a gate that stays closed":                 {"Undrain", 0, pods(podStory{IDs: "0", Gate: "closed 1m", Ready: "not 1m"}, podStory{IDs: "1-2"}), true},
		"a gate that is open":                      {"Undrain", 0, pods(podStory{IDs: "0-2"}), false},
		"a recreation":                             {"Delete", 0, pods(podStory{IDs: "0-2", From: "e1"}), true},
		"of one that updates in place by now":      {"Delete", 0, pods(podStory{IDs: "0-2", From: "v1"}), false},
		"a restart":                                {"Delete", 1, pods(podStory{IDs: "0,2"}, podStory{IDs: "1", Restart: true}), true},
		"a pod that goes":                          {"Delete", 0, pods(podStory{IDs: "0", From: "e1", Dying: "in 20s"}, podStory{IDs: "1-2"}), false},
		"a kill":                                   {"Delete", 0, func(s *scenario) { s.TApp.Spec.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceKilled} }, true},
		"a scale-down":                             {"Delete", 2, func(s *scenario) { s.TApp.Spec.Replicas = new(int32(2)) }, true},
		"a creation":                               {"Create", 1, pods(podStory{IDs: "0,2"}), true},
		"of an id that is out of range by now":     {"Create", 2, func(s *scenario) { s.Pods[0].IDs, s.TApp.Spec.Replicas = "0-1", new(int32(2)) }, false},
		"of a pod that is there":                   {"Create", 1, pods(podStory{IDs: "0-2"}), false},
		"of one that follows an ended pod later":   {"Create", 1, pods(podStory{IDs: "0,2"}, podStory{IDs: "1", Phase: corev1.PodFailed, Ended: "1s"}), true},
		"a deletion of the ended pod":              {"Delete", 1, pods(podStory{IDs: "0,2"}, podStory{IDs: "1", Phase: corev1.PodFailed, Ended: "1h"}), true},
		"an instance that was never there":         {"Create", 7, func(*scenario) {}, false},
		"an adoption":                              {"Adopt", 0, pods(podStory{IDs: "0", Owner: "none"}, podStory{IDs: "1-2"}), true},
		"a claim that is to be labelled":           {"CreateClaim", 0, withClaims, true},
		"a patch of it":                            {"UpdateClaim", 0, withClaims, true},
		"a dry run of an update":                   {"TryUpdate", 0, pods(podStory{IDs: "0-2", From: "v1"}), true},
		"of one that is where it is to be":         {"TryUpdate", 0, pods(podStory{IDs: "0-2"}), false},
		"of one that is paused by now":             {"TryUpdate", 0, func(s *scenario) { s.TApp.Spec.Paused = true }, false},
		"a dry run of a recreation":                {"TryCreate", 0, pods(podStory{IDs: "0-2", From: "e1"}), true},
		"of one that is scaled down by now":        {"TryCreate", 2, func(s *scenario) { s.TApp.Spec.Replicas = new(int32(2)) }, false},
		"an update of a TApp that is being deleted": {"Drain", 0, func(s *scenario) {
			s.TApp.DeletionTimestamp = new(ago(0))
			s.TApp.Finalizers = []string{"foregroundDeletion"}
		}, false},
		"and the deletion of a pod of such a TApp's": {"Delete", 0, func(s *scenario) { s.TApp.DeletionTimestamp = new(ago(0)); s.Pods[0].From = "e1" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := refusing(t, c.change)
			key := refusal.Key{ID: c.id, Op: c.op}
			in.Refused = refusal.Set{key: {Words: "no", Since: now.Add(-time.Hour)}}
			p := Compute(in)
			if _, is := p.Refused[key]; is != c.wanted || len(p.Refused) > 1 {
				t.Fatalf("wanted still: %v", p.Refused)
			}
			reason, text := in.Refused.Told()
			want := "none"
			if c.wanted {
				want = "True " + reason + ": " + text
			}
			if got := refusedOf(p); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			in.TApp.Status.Conditions = append(in.TApp.Status.Conditions, metav1.Condition{Type: tappv1.ConditionReplicaFailure, Status: metav1.ConditionTrue, Reason: reason, Message: text})
			if in.Refused, want = nil, "True "+reason+": "+text; !c.wanted {
				want = "False NotRefused: nothing that is wanted is refused any more"
			}
			again := Compute(in)
			if got := refusedOf(again); got != want || len(again.Refused) != len(p.Refused) {
				t.Errorf("of the stored status\ngot  %s\nwant %s", got, want)
			}
			if c.wanted {
				for _, i := range again.Instances {
					if told := i.Reason + ": " + i.Why; i.Num == c.id && told != reason+": "+key.Why(in.Refused[key])+"no" {
						t.Errorf("instance %d: %s", i.Num, told)
					}
				}
			}
		})
	}
}

func withClaims(s *scenario) {
	s.TApp.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	s.Pods = []podStory{{IDs: "0-2"}}
}

// TestRefusalIsToldFirst: Stalled names the instance that is refused and the API server's
// words, not the one that waits for it.
func TestRefusalIsToldFirst(t *testing.T) {
	const since = "since 2026-03-01T11:00:00Z"
	for name, c := range map[string]struct {
		refused []refusal.Key
		pods    []podStory
		want    string
	}{
		"an update": {[]refusal.Key{{ID: 0, Op: "Drain"}}, []podStory{{IDs: "0-2", From: "v1"}},
			"nothing moved for 600 seconds: 3 of 3 instances are available, 0 follow their template; instance 0: cannot drain it: no"},
		"deletions": {[]refusal.Key{{ID: 1, Op: "Delete"}, {ID: 0, Op: "Delete"}}, []podStory{{IDs: "0-2", From: "e1"}},
			"nothing moved for 600 seconds: 3 of 3 instances are available, 0 follow their template; instance 0: cannot delete its pod: no; instance 1: cannot delete its pod: no"},
		"though a lower one is stuck otherwise": {[]refusal.Key{{ID: 2, Op: "Create"}}, []podStory{{IDs: "0", Ready: "not"}, {IDs: "1"}},
			"nothing moved for 600 seconds: 1 of 3 instances are available, 2 follow their template; instance 2: cannot create its pod: no; instance 0: its pod is not ready"},
		"nothing": {nil, []podStory{{IDs: "0-2", From: "v1"}},
			"nothing moved for 600 seconds: 3 of 3 instances are available, 0 follow their template; instance 1: 2 of 3 instances are available, and at least 2 must be"},
	} {
		t.Run(name, func(t *testing.T) {
			in := refusing(t, func(s *scenario) { s.Pods = c.pods })
			in.Refused = refusal.Set{}
			for _, k := range c.refused {
				in.Refused[k] = refusal.Refusal{Words: "no", Since: now.Add(-time.Hour)}
			}
			in.TApp.Status.UpdatedReplicas, in.TApp.Status.AvailableReplicas, in.TApp.Status.ReadyReplicas = 3, 3, 3
			in.TApp.Status.ObservedGeneration, in.TApp.Status.LastProgressTime = in.TApp.Generation, new(ago(time.Hour))
			in.TApp.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "Progressing"}}
			p := Compute(in)
			judge(t, in, p)
			if got := meta.FindStatusCondition(p.Status.Conditions, tappv1.ConditionStalled).Message; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if len(c.refused) > 0 && !strings.Contains(refusedOf(p), since) {
				t.Errorf("the condition is %s", refusedOf(p))
			}
		})
	}
}

// TestRefusalIsNews: the status in which it comes or goes does not wait for the next one.
func TestRefusalIsNews(t *testing.T) {
	in := refusing(t)
	first := Compute(in)
	in.TApp.Status = first.Status
	for _, step := range []struct {
		about      string
		refused    refusal.Set
		want       string
		deferrable bool
	}{
		{"at first", refusal.Set{}, "none", true},
		{"refused", refusal.Set{{ID: 0, Op: "Drain"}: {Words: "no", Since: now}}, "True FailedUpdate: cannot drain instance 0 since 2026-03-01T12:00:00Z: no", false},
		{"still refused", refusal.Set{{ID: 0, Op: "Drain"}: {Words: "no", Since: now}}, "True FailedUpdate: cannot drain instance 0 since 2026-03-01T12:00:00Z: no", true},
		{"other words", refusal.Set{{ID: 0, Op: "Drain"}: {Words: "never", Since: now}}, "True FailedUpdate: cannot drain instance 0 since 2026-03-01T12:00:00Z: never", true},
		{"after a restart", nil, "True FailedUpdate: cannot drain instance 0 since 2026-03-01T12:00:00Z: never", true},
		{"it came through", refusal.Set{}, "False NotRefused: nothing that is wanted is refused any more", false},
		{"at rest", refusal.Set{}, "False NotRefused: nothing that is wanted is refused any more", true},
	} {
		in.Refused = step.refused
		p := Compute(in)
		if got := refusedOf(p); got != step.want {
			t.Errorf("%s: %s, want %s", step.about, got, step.want)
		}
		if p.StatusDeferrable != step.deferrable {
			t.Errorf("%s: deferrable is %t", step.about, p.StatusDeferrable)
		}
		in.TApp.Status = p.Status
	}
}

// TestEveryOperationIsRefusable: each operation of the planner on an instance has a reason
// by which its refusal is told, and no other has.
func TestEveryOperationIsRefusable(t *testing.T) {
	for _, op := range []Op{OpCreate, OpReplace, OpCreateClaim, OpUpdateClaim, OpDeleteClaim, OpDelete, OpForceDelete, OpDrain, OpUpdateInPlace, OpResize, OpUndrain, OpRelabel, OpAdopt, OpRelease} {
		if refusal.ReasonOf(string(op)) == "" {
			t.Errorf("%s has no reason", op)
		}
	}
	for _, op := range []Op{OpCreateRevision, OpUpdateRevision, OpDeleteRevision, OpPruneTemplates} {
		if refusal.ReasonOf(string(op)) != "" {
			t.Errorf("%s is no instance's", op)
		}
	}
}
