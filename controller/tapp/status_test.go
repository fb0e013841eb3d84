package tapp

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller/status"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

func TestStatusPatch(t *testing.T) {
	tapp := someTApp("a")
	tapp.Status = tappv1.TAppStatus{Replicas: 2, ScaleLabelSelector: "app=a", Statuses: map[string]tappv1.InstanceStatus{"0": "Running", "1": "Running"}}
	next := tapp.Status.DeepCopy()
	next.ReadyReplicas = 1
	next.Statuses = map[string]tappv1.InstanceStatus{"0": "Running"}
	got, err := status.Patch(tapp.UID, &tapp.Status, next)
	if want := `{"metadata":{"uid":"uid-a"},"status":{"readyReplicas":1,"statuses":{"1":null}}}`; err != nil || string(got) != want {
		t.Errorf("got %s and error %v, want %s", got, err, want)
	}
	next.Replicas = 0 // replicas has no omitempty, so that 0 is written
	got, _ = status.Patch(tapp.UID, &tapp.Status, next)
	if !strings.Contains(string(got), `"replicas":0`) {
		t.Errorf("got %s", got)
	}
}

// TestStatusBytes: what a status write costs follows from what has changed, not
// from how many instances there are.
func TestStatusBytes(t *testing.T) {
	const n = 1_000
	all := func(s tappv1.InstanceStatus) tappv1.TAppStatus {
		status := tappv1.TAppStatus{Replicas: n, Statuses: map[string]tappv1.InstanceStatus{}}
		for id := range n {
			status.Statuses[strconv.Itoa(id)] = s
		}
		return status
	}
	one := all(tappv1.InstanceRunning)
	one.Statuses["7"] = tappv1.InstanceUpdating
	for name, c := range map[string]struct {
		from, to tappv1.TAppStatus
		most     int
	}{
		"created":      {tappv1.TAppStatus{}, all(tappv1.InstanceRunning), 17 * n},
		"all of many":  {all(tappv1.InstanceRunning), all(tappv1.InstanceUpdating), 18 * n},
		"one of many":  {all(tappv1.InstanceRunning), one, 100},
		"all are gone": {all(tappv1.InstanceRunning), tappv1.TAppStatus{}, 100},
	} {
		tapp := someTApp("a")
		tapp.Status = c.from
		got, err := status.Patch(tapp.UID, &tapp.Status, &c.to)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", name, len(got))
		if len(got) > c.most {
			t.Errorf("%s: %d bytes, and at most %d are allowed", name, len(got), c.most)
		}
	}
}

// TestStatusIsCoalesced: a status that changes 100 times a second for 10 s is
// written at most twice a second, and its last state always.
func TestStatusIsCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tapp := someTApp("a")
		s := &stub{answer: func(string, string, string) (int, any) { return 200, tapp }}
		c := s.newController(t)
		m := &object{}
		put := func(ready int32) time.Duration {
			rest, err := c.putStatus(t.Context(), tapp, m, &plan.Plan{Status: tappv1.TAppStatus{ReadyReplicas: ready}})
			if err != nil {
				t.Fatal(err)
			}
			if rest == 0 {
				tapp.Status.ReadyReplicas = ready // what the informer will say
			}
			return rest
		}
		var rest time.Duration
		for ready := range int32(1000) {
			rest = put(ready + 1)
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(s.asked()); n < 15 || n > 20 {
			t.Errorf("%d writes in 10 s, want up to 2 a second", n)
		}
		if rest == 0 {
			t.Fatal("the last one was not held back; the test is too weak")
		}
		time.Sleep(rest)
		if put(1000) != 0 || tapp.Status.ReadyReplicas != 1000 {
			t.Error("the last state was not written")
		}
		before := len(s.asked())
		time.Sleep(time.Hour)
		if put(1000); len(s.asked()) != before {
			t.Error("an unchanged status was written")
		}
		if ask := s.asked()[0]; !strings.HasPrefix(ask, http.MethodPatch+" /apis/apps.tkestack.io/v1/namespaces/ns/tapps/a/status ") {
			t.Errorf("asked %s", ask)
		}
	})
}

// TestHeldStatusLetsThePlanGo: of a plan with thousands of actions only the status is
// kept until it is written.
func TestHeldStatusLetsThePlanGo(t *testing.T) {
	tapp := someTApp("a")
	s := &stub{answer: func(string, string, string) (int, any) { return 200, tapp }}
	c := s.newController(t)
	m := &object{}
	p := &plan.Plan{Status: tappv1.TAppStatus{ReadyReplicas: 1}, StatusDeferrable: true}
	gone := weak.Make(p)
	if _, err := c.putStatus(t.Context(), tapp, m, p); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	c.statuses.Flush(t.Context(), &m.status)
	if gone.Value() != nil || len(s.asked()) != 1 {
		t.Errorf("the plan: %v, asked at the end: %q", gone.Value(), s.asked())
	}
}

// A conflict says that others wrote to the TApp all the while, not that it is gone.
// Found by simulation: the status was forgotten.
func TestStatusAfterConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tapp := someTApp("a")
		for reason, c := range map[metav1.StatusReason]struct {
			code  int
			again time.Duration
		}{
			metav1.StatusReasonConflict: {409, time.Second},
			metav1.StatusReasonNotFound: {404, 0},
		} {
			s := &stub{answer: func(string, string, string) (int, any) { return apiError(c.code, reason, "") }}
			again, err := s.newController(t).putStatus(t.Context(), tapp, &object{}, &plan.Plan{Status: tappv1.TAppStatus{ReadyReplicas: 1}})
			if again != c.again || err != nil {
				t.Errorf("%s: again after %s, want %s, error %v", reason, again, c.again, err)
			}
		}
	})
}

func TestStatusIsFlushed(t *testing.T) {
	tapp := someTApp("a")
	s := &stub{answer: func(string, string, string) (int, any) { return 200, tapp }}
	c := s.newController(t)
	m := c.objects.Get(keyOf("a"), tapp.UID)
	for ready := range int32(3) {
		if _, err := c.putStatus(t.Context(), tapp, m, &plan.Plan{Status: tappv1.TAppStatus{ReadyReplicas: ready + 1}}); err != nil {
			t.Fatal(err)
		}
	}
	c.flushStatuses(t.Context())
	if asks := s.asked(); len(asks) != 2 || !strings.Contains(asks[1], `"readyReplicas":3`) {
		t.Errorf("asked %q, want the first and the last", asks)
	}
}
