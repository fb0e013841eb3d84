package tapp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/template"
)

// losing is a rollout from web:1 to web:2 of four instances, of which instance 3 had web:0.
// It lost its pod, and the others serve.
func losing(pods ...podStory) *scenario {
	s := story(4, append([]podStory{{IDs: "0-2", From: "v1"}}, pods...)...)
	s.Versions = map[string]json.RawMessage{}
	for _, v := range []string{"0", "1"} {
		s.Versions["v"+v] = json.RawMessage(`{"spec":{"containers":[{"name":"app","image":"web:` + v + `"}]}}`)
	}
	s.TApp.Status.Statuses = map[string]tappv1.InstanceStatus{"3": tappv1.InstanceRunning}
	return s
}

// hashes of versions of the story.
func (s *scenario) hash(t *testing.T, version string) string {
	t.Helper()
	h, err := template.Hash(s.version(t, version))
	if err != nil {
		t.Fatal(err)
	}
	return h.Template
}

// had stores what the instances had.
func (s *scenario) had(t *testing.T, version, ids string) {
	t.Helper()
	if s.TApp.Status.Contents == nil {
		s.TApp.Status.Contents = map[string]string{}
	}
	s.TApp.Status.Contents[s.hash(t, version)] = ids
}

// comes is the image of the pod that the plan makes for an instance, and whether it is
// marked as made as it was.
func comes(t *testing.T, p Plan, id string) string {
	t.Helper()
	for _, a := range p.Actions {
		if a.ID != id || a.Op != OpCreate && a.Op != OpReplace {
			continue
		}
		image := a.Pod.Spec.Containers[0].Image
		h := a.Pod.Labels[tappv1.LabelTemplateHash]
		switch mark := a.Pod.Annotations[tappv1.AnnotationKept]; mark {
		case "":
		case h:
			image += ", kept"
		default:
			t.Errorf("instance %s is of %s, and marked with %s", id, h, mark)
		}
		return image
	}
	return fmt.Sprintf("nothing: %q", ops(p))
}

// TestLosses: the table of what a pod that is made anew gets, cell by cell.
func TestLosses(t *testing.T) {
	const asItWas, usual, present = "web:0, kept", "web:1, kept", "web:2"
	columns := []string{"paused", "room", "no room", "nothing to roll out"}
	hold := map[string]func(*scenario){
		"paused":              func(s *scenario) { s.TApp.Spec.Paused = true },
		"room":                func(*scenario) {},
		"no room":             func(s *scenario) { s.Pods[0].IDs = "0-1" }, // instance 2 has no pod either
		"nothing to roll out": func(s *scenario) { s.Pods[0].From = "" },
	}
	ended := func(change podStory) func(*testing.T, *scenario, *Input) {
		return func(t *testing.T, s *scenario, in *Input) {
			change.IDs, change.From, change.Phase = "3", "v0", corev1.PodFailed
			if s.Pods[0].From == "" {
				change.From = ""
			}
			in.Pods = append(in.Pods, s.tell(t, change)...)
			if change.Reason == "TerminationByKubelet" {
				pod := in.Pods[len(in.Pods)-1]
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: change.Reason, LastTransitionTime: ago(time.Minute)})
			}
		}
	}
	goneAfter := func(what string) func(*testing.T, *scenario, *Input) {
		return func(t *testing.T, s *scenario, in *Input) {
			s.had(t, map[bool]string{true: "v0", false: "default"}[s.Pods[0].From != ""], "3"+what)
		}
	}
	gone := func(status tappv1.InstanceStatus, known, forUpdate bool) func(*testing.T, *scenario, *Input) {
		return func(t *testing.T, s *scenario, in *Input) {
			in.TApp.Status.Statuses = map[string]tappv1.InstanceStatus{}
			if status != "" {
				in.TApp.Status.Statuses["3"] = status
			}
			if version := map[bool]string{true: "v0", false: "default"}[s.Pods[0].From != ""]; known {
				s.had(t, version, "3")
			}
			if forUpdate {
				in.ForUpdate = map[string]struct{}{"3": {}}
			}
		}
	}
	for row, c := range map[string]struct {
		happened func(*testing.T, *scenario, *Input)
		want     [4]string
	}{
		"evicted":               {ended(podStory{Reason: "TerminationByKubelet"}), [4]string{asItWas, present, asItWas, present}},
		"refused":               {ended(podStory{Reason: "NodeAffinity", Rejected: true}), [4]string{asItWas, present, asItWas, present}},
		"deleted by hand":       {gone(tappv1.InstanceRunning, true, false), [4]string{asItWas, present, asItWas, present}},
		"failed by itself":      {ended(podStory{}), [4]string{asItWas, present, present, present}},
		"deleted for an update": {gone(tappv1.InstanceKilling, true, true), [4]string{present, present, present, present}},
		"by a former leader":    {gone(tappv1.InstanceKilling, true, false), [4]string{asItWas, present, asItWas, present}},
		"new":                   {gone("", false, false), [4]string{usual, present, usual, present}},
		"lost, and not known":   {gone(tappv1.InstanceRunning, false, false), [4]string{usual, present, usual, present}},
		"gone after it failed":  {goneAfter("!"), [4]string{asItWas, present, present, present}},
		"started again":         {gone(tappv1.InstanceKilled, true, false), [4]string{asItWas, present, present, present}},
	} {
		for n, column := range columns {
			t.Run(row+"/"+column, func(t *testing.T) {
				s := losing()
				hold[column](s)
				in := s.input(t)
				c.happened(t, s, &in)
				if got := comes(t, s.plan(t, in), "3"); got != c.want[n] {
					t.Errorf("it comes as %s, not %s", got, c.want[n])
				}
			})
		}
	}
}

// TestTwoLossesAtOnce: two instances of four are lost, and the budget is one: neither is
// updated by that. With a budget of two both may be.
func TestTwoLossesAtOnce(t *testing.T) {
	for budget, want := range map[string]string{"1": "web:1, kept", "2": "web:2"} {
		s := losing()
		s.Pods[0].IDs = "0-1"
		s.TApp.Spec.UpdateStrategy.MaxUnavailable = new(intstr.Parse(budget))
		s.had(t, "v1", "0-3")
		p := s.plan(t, s.input(t))
		for _, id := range []string{"2", "3"} {
			if got := comes(t, p, id); got != want {
				t.Errorf("budget %s: instance %s comes as %s, not %s", budget, id, got, want)
			}
		}
	}
}

// TestKeptPodStarts: a pod that was made as it was waits for room until it had its chance to
// become Ready, and for nothing after that. An open gate it gets at once.
func TestKeptPodStarts(t *testing.T) {
	for name, c := range map[string]struct {
		others string // of which all serve
		pod    podStory
		want   []string
	}{
		"it starts, no room":           {"0-1", podStory{Ready: "not 50s", Age: "1m"}, nil},
		"it starts, room":              {"0-2", podStory{Ready: "not 50s", Age: "1m"}, []string{"Drain 3"}},
		"its gate is not open yet":     {"0-1", podStory{Ready: "unset", Gate: "unset", Age: "1m"}, []string{"Undrain 3"}},
		"too old":                      {"0-1", podStory{Ready: "not 10m", Age: "10m"}, []string{"Drain 3"}},
		"it has no image":              {"0-1", podStory{Ready: "not 50s", Age: "1m", Waiting: "ImagePullBackOff: no"}, []string{"Drain 3"}},
		"its update began before that": {"0-1", podStory{Gate: "closed 5s", Ready: "not 5s", Age: "1m"}, []string{"UpdateInPlace 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := losing()
			s.Pods[0].IDs = c.others
			c.pod.IDs, c.pod.From = "3", "v1"
			mark := s.hash(t, "v1")
			c.pod.Annotations = map[string]*string{tappv1.AnnotationKept: &mark}
			s.Pods = append(s.Pods, c.pod)
			in := s.input(t)
			for i := range in.Pods[len(in.Pods)-1].Status.ContainerStatuses {
				if r := in.Pods[len(in.Pods)-1].Status.ContainerStatuses[i].State.Running; r != nil {
					r.StartedAt = ago(30 * time.Second)
				}
			}
			p := s.plan(t, in)
			got := slices.DeleteFunc(ops(p), func(op string) bool { return !strings.HasSuffix(op, " 3") })
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if i := p.Instances[3]; !i.Kept || c.want == nil && i.Reason != reasonBudget {
				t.Errorf("it is told: %+v", i)
			}
		})
	}
}

// TestFailureIsTold: once the pod of an instance is gone, the status tells that it failed by
// itself, or that it was started again, and what it had. The present template of then is no
// content that it had: by the next change that may be a bad one.
func TestFailureIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		pod    podStory
		told   string // of instance 3 before
		status tappv1.InstanceStatus
		want   string
	}{
		"its image is not had":   {podStory{IDs: "3", From: "v0", Ready: "not 50s", Waiting: "ImagePullBackOff: no", Dying: "in 20s"}, "", "", "3!"},
		"it serves, and goes":    {podStory{IDs: "3", From: "v0", Dying: "in 20s"}, "", "", "3"},
		"it has its next pod":    {podStory{IDs: "3", From: "v0"}, "3!", "", "3"},
		"it is gone":             {podStory{}, "3!", "", "3!"},
		"it was lost":            {podStory{}, "3", "", "3"},
		"it was killed":          {podStory{}, "3", tappv1.InstanceKilled, "3!"},
		"another's has its name": {podStory{IDs: "3", From: "v0", Owner: "other", Phase: corev1.PodFailed}, "3", "", "3"},
	} {
		for _, paused := range []bool{false, true} {
			s := losing()
			if c.pod.IDs != "" {
				s.Pods = append(s.Pods, c.pod)
			}
			if s.TApp.Spec.Paused = paused; c.told != "" {
				s.had(t, "v0", c.told)
			}
			s.TApp.Status.Statuses["3"] = c.status
			p := s.plan(t, s.input(t))
			if got := p.Status.Contents[s.hash(t, "v0")]; got != c.want {
				t.Errorf("%s, paused: %t: told of it is %q, not %q", name, paused, got, c.want)
			}
		}
	}
}

// TestContentsStand only while instances have another template than the present one.
func TestContentsStand(t *testing.T) {
	s := losing(podStory{IDs: "3", From: "v0"})
	p := s.plan(t, s.input(t))
	want := map[string]string{s.hash(t, "v1"): "0-2", s.hash(t, "v0"): "3"}
	if fmt.Sprint(p.Status.Contents) != fmt.Sprint(want) {
		t.Errorf("contents %v, not %v", p.Status.Contents, want)
	}
	s = losing(podStory{IDs: "3"})
	s.Pods[0].From = ""
	s.had(t, "v1", "0-3")
	if p = s.plan(t, s.input(t)); p.Status.Contents != nil {
		t.Errorf("contents %v, and all instances have their template", p.Status.Contents)
	}
	// They alone are no reason to write a status.
	s = losing(podStory{IDs: "3", From: "v1"})
	s.TApp.Spec.Paused = true
	in := s.input(t)
	in.TApp.Status = s.plan(t, in).Status
	in.TApp.Status.Contents = nil
	if p = s.plan(t, in); p.Status.Contents != nil {
		t.Errorf("contents %v, and nothing else is to be written", p.Status.Contents)
	}
}

// TestPreviewTellsContent: a preview, which reads no revisions, says what lost and new
// instances come with; and of a TApp that is being deleted no revisions are read.
func TestPreviewTellsContent(t *testing.T) {
	s := losing()
	s.TApp.Spec.Replicas, s.TApp.Spec.Paused = new(int32(5)), true
	s.had(t, "v0", "3")
	var got []string
	for _, change := range Preview(s.input(t)) {
		if change.Effect == effect.Create {
			got = append(got, strings.NewReplacer(s.hash(t, "v0"), "<v0>", s.hash(t, "v1"), "<v1>").Replace(change.String()))
		}
	}
	want := []string{
		`1 instance is created (3): the instance has no pod; it comes as it was (template hash <v0>), since spec.paused is true`,
		`1 instance is created (4): the instance has no pod; it comes as most serving instances of template "default" do (hash <v1>), since spec.paused is true`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	in := s.input(t)
	if p := Compute(in); !p.NeedsRevisions || len(p.Actions) > 0 || p.Instances[3].Reason != "RevisionUnread" {
		t.Errorf("before the revisions are read: asks for them: %t, %q, %+v", p.NeedsRevisions, ops(p), p.Instances[3])
	}
	in.TApp.DeletionTimestamp = new(ago(time.Minute))
	if Compute(in).NeedsRevisions {
		t.Error("revisions are read of a TApp that is being deleted")
	}
}

// TestRevisionLost: somebody deleted the revision that an instance needs.
func TestRevisionLost(t *testing.T) {
	s := losing()
	s.TApp.Spec.Paused = true
	s.Lost = []string{"v0"}
	s.had(t, "v0", "3")
	for _, a := range s.plan(t, s.input(t)).Actions {
		const want = "RevisionLost the instance has no pod; no revision has the template that it had (hash <v0>); it comes as most serving instances of template \"default\" do (hash <v1>), since spec.paused is true"
		if got := strings.NewReplacer(s.hash(t, "v0"), "<v0>", s.hash(t, "v1"), "<v1>").Replace(a.Reason + " " + a.Why); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestRevisionsInUseStay: also with a limit of 0 the revisions that instances need are not
// forgotten, and a plan that cannot tell which forgets none.
func TestRevisionsInUseStay(t *testing.T) {
	s := losing()
	s.TApp.Spec.RevisionHistoryLimit = new(int32)
	s.had(t, "v0", "3")
	in := s.input(t)
	in.Pods = in.Pods[:0]
	all := s.revisions(t, s.TApp)
	s.Versions["other"] = json.RawMessage(`{"spec":{"containers":[{"name":"app","image":"other"}]}}`)
	other := s.revisions(t, s.TApp)[0]
	other.Revision = 0
	in.Revisions = append([]*appsv1.ControllerRevision{other}, all...)
	p := Compute(in)
	if len(p.History) != 1 || p.History[0].Op != OpCreateRevision || !p.NeedsRevisions {
		t.Errorf("before the revisions are read: %v, asks for them: %t", p.History, p.NeedsRevisions)
	}
	in.RevisionsRead = true
	var forgotten []string
	for _, a := range Compute(in).History {
		if a.Op == OpDeleteRevision {
			forgotten = append(forgotten, a.Revision.Name)
		}
	}
	if want := []string{"web-other", "web-v1"}; !slices.Equal(forgotten, want) {
		t.Errorf("forgotten are %q, not %q", forgotten, want)
	}
}
