package tapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/termination"
)

// telling runs a recorder in fake time; told are its events as "type reason
// message".
func telling(t *testing.T, f func(t *testing.T, r recorder, told func() []string)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(_, _, body string) (int, any) { return 201, json.RawMessage(body) }}
		c := s.newController(t)
		r := newRecorder(c.Options)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		f(t, r, func() []string {
			synctest.Wait()
			var out []string
			for _, ask := range s.asked() {
				var e corev1.Event
				if err := json.Unmarshal([]byte(ask[strings.Index(ask, "{"):]), &e); err != nil {
					t.Fatal(err)
				}
				out = append(out, e.Type+" "+e.Reason+" "+e.Message)
			}
			return out
		})
		cancel()
		<-done
	})
}

var (
	created = operations()[plan.OpCreate]
	drained = operations()[plan.OpDrain]
)

func TestEventsTellRanges(t *testing.T) {
	telling(t, func(t *testing.T, r recorder, told func() []string) {
		for n := range 250 {
			r.succeeded(someTApp("a"), created, &plan.Action{ID: fmt.Sprint(n), Pod: somePod("a-1", "", ""), Why: "the instance has no pod"})
		}
		r.succeeded(someTApp("a"), created, &plan.Action{ID: "300", Pod: somePod("a-1", "", ""), Why: "the instance has no pod"})
		r.succeeded(someTApp("a"), drained, &plan.Action{ID: "300", Pod: somePod("a-1", "", ""), Why: "no event of its own"})
		r.succeeded(someTApp("b"), created, &plan.Action{ID: "7", Pod: somePod("b-1", "", ""), Why: "the instance has no pod"})
		if len(told()) != 0 {
			t.Errorf("told at once: %q", told())
		}
		time.Sleep(2 * time.Second)
		want := []string{
			"Normal SuccessfulCreate created instances 0-249,300: the instance has no pod",
			"Normal SuccessfulCreate created instance 7: the instance has no pod",
		}
		if got := told(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// TestEventsOfAFailure: a quota that is exhausted for an hour, tried every 30 s.
func TestEventsOfAFailure(t *testing.T) {
	telling(t, func(t *testing.T, r recorder, told func() []string) {
		for n := range 120 {
			name := fmt.Sprint("a-", n%10)
			r.failed(someTApp("a"), created, &plan.Action{ID: fmt.Sprint(n % 10), Pod: somePod(name, "", "")},
				apierrors.NewForbidden(corev1.Resource("pods"), name, errors.New("exceeded quota: q")))
			time.Sleep(30 * time.Second)
		}
		got := told()
		if len(got) > 20 || len(got) < 10 {
			t.Errorf("%d events in an hour", len(got))
		}
		if got[0] != `Warning FailedCreate cannot create instance 0: pods "a-<id>" is forbidden: exceeded quota: q` {
			t.Errorf("told %q", got[0])
		}
	})
}

// TestTerminatingClaimsAreToldOnce: by an event each, from when they are seen, and not again
// by the next process, which finds them in the stored status.
func TestTerminatingClaimsAreToldOnce(t *testing.T) {
	telling(t, func(t *testing.T, r recorder, told func() []string) {
		c := &Controller{recorder: r}
		tapp, o := someTApp("a"), &object{}
		claims := []termination.Claim{{Instance: 1, Name: "data-a-1", UID: "u1", Volume: "pv-7"}}
		for range 10 {
			c.tellClaims(tapp, o, claims)
			time.Sleep(10 * time.Minute)
		}
		const want = "Warning ClaimTerminating claim data-a-1 (UID u1) of instance 1 is being deleted, and goes with its pod: to save its volume, set persistentVolumeReclaimPolicy of PersistentVolume pv-7 to Retain"
		if got := told(); len(got) != 1 || got[0] != want {
			t.Errorf("told %q", got)
		}
		tapp.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionClaimTerminating, Status: metav1.ConditionTrue, Message: claims[0].String()}}
		o = &object{}
		c.tellClaims(tapp, o, claims)
		time.Sleep(10 * time.Minute)
		if got := told(); len(got) != 1 {
			t.Errorf("the next process told %q", got)
		}
		tapp.Status.Conditions = nil
		c.tellClaims(tapp, o, nil)
		claims[0].UID = "u2"
		c.tellClaims(tapp, o, claims)
		time.Sleep(10 * time.Minute)
		if got := told(); len(got) != 2 {
			t.Errorf("of the next claim of that name %q is told", got)
		}
		for n := range 100 {
			claims = append(claims, termination.Claim{Instance: n + 2, Name: fmt.Sprint("data-a-", n+2), UID: types.UID(fmt.Sprint("v", n))})
		}
		c.tellClaims(tapp, o, claims)
		time.Sleep(10 * time.Minute)
		if got := told(); len(got) != 2+maxProblems || !strings.Contains(fmt.Sprint(got), "(and 95 more claims)") {
			t.Errorf("told %d: %q", len(got), got)
		}
	})
}

func TestProblemsAreToldOnceAGeneration(t *testing.T) {
	telling(t, func(t *testing.T, r recorder, told func() []string) {
		c := &Controller{recorder: r}
		tapp, m := someTApp("a"), &object{}
		problems := []plan.Problem{{Field: "spec.templates[1]", Reason: "TemplateMissing", Why: "there is no template \"x\""}}
		for range 10 {
			c.tellProblems(tapp, m, problems)
			time.Sleep(10 * time.Minute)
		}
		if got := told(); len(got) != 1 || got[0] != `Warning TemplateMissing spec.templates[1]: there is no template "x"` {
			t.Errorf("told %q", got)
		}
		tapp.Generation++
		c.tellProblems(tapp, m, problems)
		time.Sleep(10 * time.Minute)
		if got := told(); len(got) != 2 {
			t.Errorf("told %q, want it once more", got)
		}
		tapp.Generation++
		for n := range 100 {
			problems = append(problems, plan.Problem{Field: fmt.Sprintf("spec.statuses[%d]", n), Reason: "InvalidSpec", Why: "no"})
		}
		c.tellProblems(tapp, m, problems)
		time.Sleep(10 * time.Minute)
		if got := told(); len(got) != 2+maxProblems || !strings.Contains(fmt.Sprint(got), "(and 96 more problems)") {
			t.Errorf("told %d: %q", len(got), got)
		}
	})
}
