package tapp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/trial"
)

// question asks about a pod.
func question(kind trial.Kind, key string) plan.Action {
	return plan.Action{Op: plan.OpTry, ID: "1", Pod: somePod("a-1", "u", "1"), Patch: []byte(`{"p":1}`), Question: trial.Question{Kind: kind, Key: key}}
}

// TestAsk: a question is a dry run, whose answer is kept in the API server's words.
func TestAsk(t *testing.T) {
	const pods = "/api/v1/namespaces/ns/pods"
	for kind, request := range map[trial.Kind]string{
		trial.Update: "PATCH " + pods + `/a-1?dryRun=All {"p":1}`, trial.Resize: "PATCH " + pods + `/a-1/resize?dryRun=All {"p":1}`, trial.Create: "POST " + pods + "?dryRun=All {",
	} {
		for want, answer := range map[trial.Verdict]func() (int, any){
			trial.Admitted: func() (int, any) { return 200, somePod("a-1", "u", "2") },
			trial.Refused:  func() (int, any) { return apiError(403, metav1.StatusReasonForbidden, `pods "a-1" is forbidden: no`) },
			trial.NoAnswer: func() (int, any) { return apiError(503, metav1.StatusReasonServiceUnavailable, "away") },
		} {
			s := &stub{answer: func(string, string, string) (int, any) { return answer() }}
			c, o := s.newController(t), &object{}
			a := question(kind, "k")
			c.ask(t.Context(), someTApp("a"), o, []plan.Action{a})
			c.asks.Wait()
			if asked := s.asked(); len(asked) == 0 || !strings.HasPrefix(asked[0], request) {
				t.Errorf("%s: asked %q, want %s", kind, asked, request)
			}
			got := o.trials.known()[a.Question]
			if words := map[trial.Verdict]string{trial.Refused: `pods "a-<id>" is forbidden: no`, trial.NoAnswer: "away"}[want]; got.Verdict != want || got.Words != words {
				t.Errorf("%s: %+v, want %s: %q", kind, got, want, words)
			}
		}
	}
}

// TestRefusedTriesAreEvents: a refusal of a dry run is an event, and a missing answer is none.
func TestRefusedTriesAreEvents(t *testing.T) {
	telling(t, func(t *testing.T, r recorder, told func() []string) {
		status := 403
		s := &stub{answer: func(string, string, string) (int, any) {
			return apiError(status, map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 503: metav1.StatusReasonServiceUnavailable}[status], `pods "a-1" is forbidden: no`)
		}}
		c, o := s.newController(t), &object{}
		c.recorder = r
		ask := func(kinds ...trial.Kind) {
			for _, kind := range kinds {
				c.ask(t.Context(), someTApp("a"), o, []plan.Action{question(kind, "k")})
				c.asks.Wait()
			}
		}
		ask(trial.Update, trial.Create)
		status = 503
		ask(trial.Resize)
		time.Sleep(2 * time.Second) // of the bubble: events wait for others like them
		want := []string{"Warning FailedCreate cannot begin the recreation of instance 1: pods \"a-<id>\" is forbidden: no", "Warning FailedUpdate cannot begin the update in place of instance 1: pods \"a-<id>\" is forbidden: no"}
		if got := slices.Sorted(slices.Values(told())); !slices.Equal(got, want) {
			t.Errorf("events are %q, want %q", got, want)
		}
	})
}

// TestAskedOnce: while a question is under way it is not asked again, and at most MaxAsked are.
func TestAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s := &stub{answer: func(string, string, string) (int, any) { <-hang; return 200, somePod("a-1", "u", "2") }}
		c, o := s.newController(t), &object{}
		for range 2 {
			for n := range trial.MaxAsked + 3 {
				c.ask(t.Context(), someTApp("a"), o, []plan.Action{question(trial.Update, fmt.Sprint(n))})
			}
			synctest.Wait()
		}
		if n := len(s.asked()); n != trial.MaxAsked {
			t.Errorf("%d are under way, want %d", n, trial.MaxAsked)
		}
		close(hang)
		c.asks.Wait()
		if n := len(o.trials.known()); n != trial.MaxAsked {
			t.Errorf("%d have answers", n)
		}
		c.ask(t.Context(), someTApp("a"), o, []plan.Action{question(trial.Update, "0")})
		c.asks.Wait()
		if n := len(s.asked()); n != trial.MaxAsked+1 {
			t.Errorf("asked %d times: a question cannot be asked again", n)
		}
	})
}

// TestAnswersAreFew: answers of which nothing holds any more make room for others.
func TestAnswersAreFew(t *testing.T) {
	var o trials
	at := time.Unix(0, 0)
	for n := range trial.MaxKept + 10 {
		o.end(trial.Question{Kind: trial.Update, Key: fmt.Sprint(n)}, trial.Said{Verdict: trial.Refused, At: at})
	}
	if n := len(o.known()); n != trial.MaxKept {
		t.Errorf("%d are kept", n)
	}
	last := trial.Question{Kind: trial.Update, Key: "last"}
	o.end(last, trial.Said{Verdict: trial.Refused, At: at.Add(time.Hour)})
	if known := o.known(); len(known) != 1 || known[last].Verdict != trial.Refused {
		t.Errorf("%d are kept", len(known))
	}
}

// TestWritesAnswer: how a write ended is an answer to its question. Where the update of a pod is
// refused, its gate is to open at once.
func TestWritesAnswer(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		about  string
		kind   trial.Kind
		err    error
		known  bool
		again  bool
		refuse int
	}{
		{"passed", trial.Update, nil, true, false, 0},
		{"refused", trial.Update, apierrors.NewForbidden(pods, "a-1", errors.New("no")), true, true, 1},
		{"resize refused", trial.Resize, apierrors.NewForbidden(pods, "a-1", errors.New("no")), true, true, 1},
		{"creation refused", trial.Create, apierrors.NewForbidden(pods, "a-1", errors.New("no")), true, false, 1},
		{"away", trial.Update, apierrors.NewServiceUnavailable("away"), false, false, 0},
		{"conflict", trial.Update, apierrors.NewConflict(pods, "a-1", errors.New("old")), false, false, 0},
	} {
		var o trials
		a := question(c.kind, "k")
		a.Pod.Status.Conditions = []corev1.PodCondition{{Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(time.Unix(90, 0))}}
		if c.kind == trial.Create {
			a.Pod.Status.Conditions = nil
		}
		again := o.wrote(&a, c.err, time.Unix(100, 0))
		got, known := o.known()[a.Question]
		if again != c.again || known != c.known || got.Refusal.Times != c.refuse {
			t.Errorf("%s: again %t, %+v", c.about, again, got)
		}
	}
	var o trials
	if a := (plan.Action{Op: plan.OpRelabel, Pod: somePod("a-1", "u", "1")}); o.wrote(&a, nil, time.Unix(100, 0)) || len(o.known()) > 0 {
		t.Error("a write that answers nothing is kept")
	}
}

// TestCutTries: questions are not carried out with the actions, which keep their order.
func TestCutTries(t *testing.T) {
	tries, others := partBy(plan.OpTry, []plan.Action{{Op: plan.OpDrain, ID: "0"}, {Op: plan.OpTry, ID: "1"}, {Op: plan.OpDelete, ID: "2"}})
	ids := func(all []plan.Action) (out []string) {
		for _, a := range all {
			out = append(out, a.ID)
		}
		return out
	}
	if !slices.Equal(ids(tries), []string{"1"}) || !slices.Equal(ids(others), []string{"0", "2"}) {
		t.Errorf("%v and %v", ids(tries), ids(others))
	}
}
